"""The facts of a message: figures, names, reasons and commands, which stay when its sentence becomes a better one."""

from __future__ import annotations


def missing(message: object, *facts: object) -> list[str]:
    """The facts, as text, that the text of a message does not contain, in the given order."""
    return [str(fact) for fact in facts if str(fact) not in str(message)]

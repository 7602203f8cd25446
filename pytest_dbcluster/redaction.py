"""Generated passwords, and the one place that takes them out of everything that is shown."""

from __future__ import annotations

import secrets

_KNOWN: set[str] = set()


def new_password() -> str:
    """A fresh password of 24 characters that needs no quoting in SQL, my.cnf or a shell."""
    return remember(secrets.token_hex(12))


def remember(password: str) -> str:
    """The same password, from now on redacted in every text that goes through ``redact``."""
    if password:
        _KNOWN.add(password)
    return password


def redact(text: str) -> str:
    """The text with every known password replaced by ``***``."""
    for password in _KNOWN:
        text = text.replace(password, "***")
    return text

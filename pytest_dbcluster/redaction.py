"""Generate passwords, and remove them from every text before it is shown or written."""

from __future__ import annotations

import secrets

_KNOWN: set[str] = set()


def new_password() -> str:
    """A new password of 24 characters that needs no quoting in SQL, my.cnf or a shell; ``redact`` removes it."""
    return remember(secrets.token_hex(12))


def remember(password: str) -> str:
    """Return the password, and make ``redact`` remove it from now on."""
    if password:
        _KNOWN.add(password)
    return password


def redact(text: str) -> str:
    """The text with every known password replaced by ``***``."""
    for password in _KNOWN:
        text = text.replace(password, "***")
    return text

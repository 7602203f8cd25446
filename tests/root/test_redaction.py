"""Passwords: generated, and taken out of everything that is shown."""

from __future__ import annotations

import re

from pytest_dbcluster import redaction


def test_a_password_needs_no_quoting_and_is_never_the_same():
    """Letters and digits, 24 of them."""
    one, other = redaction.new_password(), redaction.new_password()

    assert re.fullmatch(r"[0-9a-f]{24}", one)
    assert one != other


def test_known_passwords_are_redacted():
    """Those that were made and those that were read, wherever they stand in a text."""
    made, read = redaction.new_password(), redaction.remember("from-a-template")

    assert redaction.redact(f"-p{made} {read}, {made}") == "-p*** ***, ***"


def test_no_password_redacts_nothing():
    """An empty one would be found between any two letters."""
    redaction.remember("")

    assert redaction.redact("abc") == "abc"

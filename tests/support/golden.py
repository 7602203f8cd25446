"""Golden files: the messages of one family as users read them, in ``tests/golden/FAMILY.txt``.

Tests of a single message assert its facts. One test for each family renders all its messages and compares them here.
``DBCLUSTER_GOLDEN=write`` rewrites the files: read the difference before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_dbcluster.errors import DBClusterError

DIRECTORY = Path(__file__).parents[1] / "golden"
WRITE = os.environ.get("DBCLUSTER_GOLDEN") == "write"


def compare(family: str, messages: Mapping[str, str], hidden: Mapping[object, str] | None = None) -> None:
    """Compare messages with the golden file of their family, or rewrite it.

    messages: what happened -> the message. hidden: text that differs between runs, such as a path -> what the file
    has in its place.
    """
    text = "\n".join(f"# {title}\n{message}\n" for title, message in messages.items())
    for value, name in (hidden or {}).items():
        text = text.replace(str(value), name)
    file = DIRECTORY / f"{family}.txt"
    if WRITE:
        file.write_text(text)

    assert file.exists(), f"no {file}; write it: DBCLUSTER_GOLDEN=write .venv/bin/pytest TEST"
    assert text == file.read_text()


def message_of(call: Callable[..., object], *arguments: object, **keywords: object) -> str:
    """The message of the error for users that this call raises; fails if it raises none, or another one."""
    with pytest.raises(DBClusterError) as caught:
        call(*arguments, **keywords)
    return str(caught.value)

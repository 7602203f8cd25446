"""Errors: what their messages have of the output of a program."""

from __future__ import annotations

from pytest_dbcluster.errors import MOST, CommandFailed


def test_a_failed_command_says_its_last_whole_lines():
    """No line begins in its middle, which would hide the words that matter."""
    lines = [f"cp: error writing 'a{number}': No space left on device" for number in range(200)]

    said = str(CommandFailed(["cp", "a", "b"], 1, stderr="\n".join(lines), host="node1"))

    head, _, rest = said.partition("cp: error")
    assert head == "cp a b on node1 ended with 1: "
    assert f"cp: error{rest}".splitlines() == lines[-len(rest.splitlines()) :]
    assert MOST - 100 < len(rest) < MOST


def test_a_single_long_line_keeps_its_end():
    """It has no beginning that fits."""
    said = str(CommandFailed(["cat"], 1, stderr="x" * 3000 + " the end"))

    assert said.endswith("xx the end")
    assert len(said) < MOST + 100

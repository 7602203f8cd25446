"""Errors: what their messages have of the output of a program."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import MOST, CommandFailed, merge_names


def test_a_failed_command_says_its_last_whole_lines():
    """No line begins in its middle, which would hide the words that matter."""
    lines = [f"cp: error writing 'a{number}': No space left on device" for number in range(200)]

    said = str(CommandFailed(["cp", "a", "b"], 1, stderr="\n".join(lines), host="node1"))

    head, _, rest = said.partition("cp: error")
    assert head == "cp a b on node1 ended with 1: "
    assert f"cp: error{rest}".splitlines() == lines[-len(rest.splitlines()) :]
    assert MOST - 100 < len(rest) < MOST


@pytest.mark.parametrize(
    ("status", "words"), [(3, "ended with 3"), (255, "ended with 255"), (-9, "by SIGKILL"), (-127, "by signal 127")]
)
def test_any_status_has_words(status, words):
    """Also the number of a signal that has no name."""
    assert words in str(CommandFailed(["perl"], status))


def test_a_single_long_line_keeps_its_end():
    """It has no beginning that fits."""
    said = str(CommandFailed(["cat"], 1, stderr="x" * 3000 + " the end"))

    assert said.endswith("xx the end")
    assert len(said) < MOST + 100


def test_lines_of_several_names_become_one():
    """Only equal texts after one name are merged; the name comes before the first colon and has no space."""
    lines = [
        "galera3: log_bin is left out",
        "report: a",
        "two words: same",
        "flush_2: log_bin is left out",
        "more words: same",
    ]

    assert merge_names(lines) == [
        "galera3, flush_2: log_bin is left out",
        "report: a",
        "two words: same",
        "more words: same",
    ]

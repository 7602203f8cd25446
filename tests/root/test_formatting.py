"""Sizes, durations and counts in messages."""

from __future__ import annotations

import pytest

from pytest_dbcluster import formatting


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (42, "42 s"), (420, "7 min"), (5 * 3600, "5 h"), (3 * 86400, "3 d"), (89, "89 s"), (90, "2 min")],
)
def test_a_duration_has_one_unit(seconds, shown):
    """Ages are read at a glance."""
    assert formatting.duration(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        *[(0, "0 MB"), (112_000, "0.1 MB"), (3_000_000, "3 MB"), (9_800_000, "9.8 MB"), (38_200_000, "38 MB")],
        *[(271_600_000, "272 MB"), (999_000_000, "999 MB"), (1_540_000_000, "1.5 GB")],
    ],
)
def test_a_size_is_decimal(count, shown):
    """Megabytes below a gigabyte, as packages and disks are counted; small sizes have a decimal."""
    assert formatting.size(count) == shown


def test_memory_is_binary():
    """As limits of containers and options of servers are written."""
    assert (formatting.mebibytes(48 * 2**20), formatting.mebibytes(2**19)) == ("48 MiB", "0.5 MiB")
    assert formatting.gibibytes(2**31) == "2.0 GiB"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00fc \u00d7 \u6587", "plain \u00fc \u00d7 \u6587"),
        ("\x1b[2J\r\x07\x9b1m\x7f", r"\x1b[2J\r\x07\x9b1m\x7f"),
        ("\u202egnp.exe\u2028\ud800", r"\u202egnp.exe\u2028\ud800"),
        ("a\nb\tc", r"a\nb\tc"),
    ],
)
def test_what_controls_a_terminal_is_shown_as_its_escape(text, shown):
    """Letters of every language stay; what moves the cursor, changes colours or turns the direction does not."""
    assert formatting.printable(text) == shown


def test_lines_of_a_message_stay_lines():
    """An error may quote several lines of a log; escape sequences among them are shown."""
    assert formatting.printable("one\n\ttwo\x1b[0m", lines=True) == "one\n\ttwo\\x1b[0m"


@pytest.mark.parametrize(("number", "shown"), [(0, "0 nodes"), (1, "1 node"), (3, "3 nodes")])
def test_one_alone_has_no_plural(number, shown):
    """One has the singular, every other number the plural."""
    assert formatting.counted(number, "node") == shown


def test_a_noun_that_ends_in_s_has_its_plural():
    """A second s would be wrong."""
    assert (formatting.counted(1, "process"), formatting.counted(2, "process")) == ("1 process", "2 processes")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("../../../../evil", "evil"),
        ("/etc/passwd", "etc_passwd"),
        ("..", "unnamed"),
        ("", "unnamed"),
        (".hidden", "hidden"),
        ("a b\n\x1b[31mc", "a_b_31mc"),
        ("flush_2.beats(default, by=0.1)", "flush_2.beats_default_by_0.1"),
        ("gr\u00f6\u00dfer", "gr_er"),
        ("x" * 300, "x" * 60),
    ],
)
def test_a_name_is_one_part_of_a_path(text, name):
    """Whatever a user writes: no other directory, no hidden file, no length that a file system refuses."""
    assert formatting.file_name(text) == name


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", "b", "c", "d"], "a, b, c, d"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
)
def test_a_long_list_is_cut(names, text):
    """The number of names that are left out is two or more."""
    assert formatting.some(names) == text

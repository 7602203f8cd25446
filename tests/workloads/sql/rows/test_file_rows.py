"""The rows of files of data, and their SQL text."""

from __future__ import annotations

import io

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql.rows import file_rows


def read(text, *, tabs):
    """The rows of a file with this text, each with its line."""
    return list(
        file_rows.read(io.TextIOWrapper(io.BytesIO(text.encode()), newline="\n" if tabs else ""), "t", tabs=tabs)
    )


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1\tAnn\n2\tBob\n", [(1, ["1", "Ann"]), (2, ["2", "Bob"])]),
        ("1\tAnn\r\n\n2\tBob", [(1, ["1", "Ann"]), (3, ["2", "Bob"])]),
        ("1\tAnn\\\nLee\t2\n3\tx\t4\n", [(1, ["1", "Ann\\\nLee", "2"]), (3, ["3", "x", "4"])]),
        ("1\ta\\\tb\t2\n", [(1, ["1", "a\\\tb", "2"])]),
        ("1\ta\\\\\t2\n", [(1, ["1", "a\\\\", "2"])]),
        ("1\ta\\\\\n2\t\\\\\\\n\n", [(1, ["1", "a\\\\"]), (2, ["2", "\\\\\\\n"])]),
        ("1\ta\rb\n", [(1, ["1", "a\rb"])]),
        ("1\ta\\", [(1, ["1", "a\\"])]),
        ("", []),
    ],
)
def test_a_backslash_makes_a_tab_and_an_end_of_line_part_of_a_value(text, rows):
    """So servers write these characters; after a backslash that is escaped itself they end a value."""
    assert read(text, tabs=True) == rows


def test_escapes_become_what_they_stand_for():
    r"""In the SQL text; ``\N`` is NULL."""
    (row,) = file_rows.literals(read("\\N\tAnn\\\nLee\ta\\\tb\\0\n", tabs=True), ["a", "b", "c"], "t", escaped=True)

    assert row == (1, "NULL,'Ann\nLee','a\tb\\0'")


def test_a_value_of_csv_may_be_long():
    """Longer than what Python's reader permits by default."""
    (row,) = read(f'1,"{"x" * 200_000}"\n', tabs=False)

    assert len(row[1][1]) == 200_000


@pytest.mark.parametrize(("text", "tabs", "line"), [('1,"a\n2,b', False, 1), ("1\ta\t2\n", True, 1)])
def test_what_fits_no_table_is_an_error_with_its_line(text, tabs, line):
    """A quote without an end, and a value too many."""
    with pytest.raises(ConfigError, match=rf"^t:{line}: "):
        list(file_rows.literals(read(text, tabs=tabs), ["a", "b"], "t", escaped=tabs))

"""Tables of the command line."""

from pytest_dbcluster.reporting.tables import layout


def test_a_plain_table_wraps_nothing():
    """Each column is as wide as its widest cell, no line ends in spaces, and a table without rows has its head."""
    long = "a directory with (a long) name " * 9
    said = layout.plain(("release", "size", "where"), [("mariadb:10.11", "9 MB", long), ("x", "", "")])

    assert said.split("\n") == [
        "release        size  where",
        f"mariadb:10.11  9 MB  {long.rstrip()}",
        "x",
    ]
    assert layout.plain(("release", "size"), []) == "release  size"


def test_a_cell_does_not_control_the_terminal():
    """Names of other users' clusters are cells; a row stays a row, and columns stay aligned."""
    assert layout.plain(("name", "state"), [("\x1b[31m\n", "kept")]).split("\n") == [
        "name        state",
        r"\x1b[31m\n  kept",
    ]

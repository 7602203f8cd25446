"""GTIDs that one server has and another lacks."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.dialects.gtid_sets import GtidInterval, lacking

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("own", "other", "found"),
    [
        ("", "0-1-9", []),
        ("0-1-9", "0-1-9", []),
        ("0-1-9", "0-1-12,0-2-20", []),
        ("0-1-130", "0-1-123,0-2-200", ["0-1-124..0-1-130"]),
        ("0-1-13,0-2-14", "0-1-13", ["0-2-14"]),
        ("0-1-13,0-2-15", "0-1-20", ["0-2-14..0-2-15"]),
        ("0-1-160,0-2-150", "0-1-123,0-2-150", ["0-1-151..0-1-160"]),
        ("0-1-5,1-1-3", "0-1-5", ["1-1-1..1-1-3"]),
        ("0-1-2", "", ["0-1-1..0-1-2"]),
    ],
)
def test_servers_of_a_domain_of_mariadb_share_its_numbers(own, other, found):
    """The first missing number follows the last one that the other server has of it, or that another server wrote."""
    assert [str(interval) for interval in lacking(own, other)] == found


@pytest.mark.parametrize(
    ("own", "other", "found"),
    [
        ("", f"{A}:1-5", []),
        (f"{A}:1-5", f"{A}:1-7,\n{B}:1", []),
        (f"{A}:1-9", f"{A}:1-5", [f"{A}:6..{A}:9"]),
        (f"{A}:1-9:12", f"{A}:1-3:5-8", [f"{A}:4", f"{A}:9", f"{A}:12"]),
        (f"{A}:1-5,\n{B}:1-2", f"{A}:1-5", [f"{B}:1..{B}:2"]),
        (f"{A.upper()}:1-5", f"{A}:1-5", []),
        (f"{A}:1-2:app:1-3", f"{A}:1-2:app:1", [f"{A}:app:2..{A}:app:3"]),
        (f"{A}:1-3", "", [f"{A}:1..{A}:3"]),
    ],
)
def test_a_set_of_mysql_has_intervals_of_each_server_and_tag(own, other, found):
    """The result has the parts of its intervals that the other set does not have."""
    assert [str(interval) for interval in lacking(own, other)] == found


def test_an_interval_counts_its_gtids():
    """Both ends belong to it."""
    assert GtidInterval("0-1", 124, 130).size == 7
    assert GtidInterval(A, 5, 5).size == 1

"""A replication group as its members see it, without a server."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.group_replication import members as group
from pytest_dbcluster.clusters.topologies.group_replication.members import Member, View
from pytest_dbcluster.errors import NotReady, ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from tests.support.facts import missing


@pytest.fixture
def node(mysql):
    """A node on a host that does nothing; its server does not run."""
    return Node("node1", FakeHost("node1"), mysql, 3306, "secret")


def members(*states):
    """Members with these states, the first one primary."""
    return tuple(Member(f"node{n}", state, "SECONDARY" if n else "PRIMARY") for n, state in enumerate(states))


@pytest.mark.parametrize(
    ("states", "majority"),
    [
        (["ONLINE", "ONLINE", "UNREACHABLE"], True),
        (["ONLINE", "RECOVERING"], True),
        (["ONLINE", "UNREACHABLE"], False),
        (["ERROR"], False),
        ([], False),
    ],
)
def test_more_than_half_of_the_members_are_a_majority(node, states, majority):
    """Half of the members are no majority, nor is an expelled member that sees only itself."""
    assert View(node, members(*states)).has_majority is majority


def test_only_members_that_are_online_have_a_role(node):
    """One that is still recovering, or cannot be reached, takes neither writes nor reads."""
    seen = View(node, members("ONLINE", "ONLINE", "RECOVERING"))

    assert (seen.primaries, seen.secondaries) == (["node0"], ["node1"])
    assert View(node, members("UNREACHABLE", "ONLINE")).primaries == []


def test_a_group_of_which_nobody_lives_is_an_error(node):
    """It names every node with what was seen of it."""
    with pytest.raises(ProvisionError) as caught:
        group.common_view([node])
    assert missing(caught.value, "no node is in the majority", ": node1 does not run") == []


def test_transactions_of_the_group_are_told_from_others():
    """By the UUID before their numbers, over lines and tags."""
    executed = "aa-1:1-5:7,\nbb-2:1,\nAA-1:tag:1-2"

    assert group.split_gtids(executed, ["aa-1"]) == ("aa-1:1-5:7,AA-1:tag:1-2", "bb-2:1")
    assert group.split_gtids("", ["aa-1"]) == ("", "")


def test_equal_sets_lack_nothing(node):
    """Equal GTID sets need no query."""
    assert group.missing_gtids({node: "aa-1:1-5"}) == {}


@pytest.mark.parametrize(
    ("options", "several"),
    [
        ({}, False),
        ({"group_replication_single_primary_mode": "ON"}, False),
        ({"group_replication_single_primary_mode": "0"}, True),
        ({"loose_group_replication_single_primary_mode": "off"}, True),
    ],
)
def test_the_options_say_how_many_primaries_there_are(node, options, several):
    """The option is recognised in every spelling."""
    node.options = options

    assert group.multi_primary(node) is several


class Starting:
    """A member that is still at START GROUP_REPLICATION for so many statements."""

    def __init__(self, refusals, number=group.STARTING):
        self.name, self.said = "node1", []
        self._refusals, self._number = refusals, number

    def query(self, statement, *limit):
        """Refuse the statement, or record it."""
        if self._refusals:
            self._refusals -= 1
            raise SQLError(self.name, statement, self._number, "START or STOP GROUP_REPLICATION is ongoing.")
        self.said.append(statement)
        return [(7,)]


def test_a_member_that_is_still_starting_is_told_again():
    """Each executes the statement once; another refusal is an error at once."""
    members = [Starting(0), Starting(2)]
    group.execute(members, "SET GLOBAL x = 1")

    assert [member.said for member in members] == [["SET GLOBAL x = 1"]] * 2
    with pytest.raises(SQLError, match=r"^node1: 'SET GLOBAL x = 1' failed: 1231 "):
        group.execute([Starting(1, number=1231)], "SET GLOBAL x = 1")


def test_members_are_as_patient_as_before():
    """Also when nobody was expelled in time: each has its own value again."""
    member = Starting(0)
    with pytest.raises(NotReady), group.expel_at_once([member]):
        raise NotReady("nobody left", 1.0, [])

    timeout = "group_replication_member_expel_timeout"
    assert member.said == [f"SELECT @@global.{timeout}", f"SET GLOBAL {timeout} = 0", f"SET GLOBAL {timeout} = 7"]

"""What hosts say of DRBD's device, as it is read; without hosts."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topologies.drbd import resource
from pytest_dbcluster.clusters.topologies.drbd.resource import Resource, parse
from pytest_dbcluster.errors import CommandFailed, NotReady, ProvisionError, Unsupported
from pytest_dbcluster.hosts.host import BlockDevice
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from tests.support.facts import missing

VERSION = "version: 8.4.11 (api:1/proto:86-101)\nsrcversion: DA6B55A41DED5E58CDBAB30\n"
QUIET = (
    VERSION
    + """ 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----
    ns:40 nr:0 dw:40 dr:33 al:2 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0
[    3.120000] drbd r0: conn( WFConnection -> WFReportParams )
[    3.190000] drbd r0/0 drbd0: disk( Inconsistent -> UpToDate ) pdsk( Inconsistent -> UpToDate )
"""
)
ALONE = (
    VERSION
    + """ 0: cs:StandAlone ro:Primary/Unknown ds:UpToDate/DUnknown   r-----
    ns:40 nr:0 dw:44 dr:33 al:2 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:16
"""
)
COPYING = (
    VERSION
    + """ 0: cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent B r-----
    ns:40 nr:0 dw:40 dr:33 al:2 bm:0 lo:0 pe:3 ua:2 ap:0 ep:1 wo:f oos:2048
        [===>................] sync'ed: 20.0% (2048/2560)K
"""
)
SPLIT = ALONE + "[    9.5] block drbd0: Split-Brain detected but unresolved, dropping connection!\n"


class Disk(FakeHost, BlockDevice):
    """A host with a disk that prints what it is told."""

    device = "/dev/vdb"


def pair(first, second=None):
    """A device on two hosts that print this of it."""
    texts = [first, first if second is None else second]
    return Resource([Disk(f"node{n}", answers={"*/proc/drbd*": text}) for n, text in enumerate(texts, start=1)])


def test_a_state_is_read_with_its_history():
    """Changes that the kernel has logged are part of it: a round must not miss one that was soon over."""
    state = parse(QUIET)

    assert str(state) == "Connected, Primary/Secondary, UpToDate/UpToDate"
    assert (state.protocol, state.pending, state.out_of_sync, state.split_brain) == ("C", 0, 0, False)
    assert state.changes == [
        "drbd r0: conn( WFConnection -> WFReportParams )",
        "drbd r0/0 drbd0: disk( Inconsistent -> UpToDate ) pdsk( Inconsistent -> UpToDate )",
    ]
    assert (parse(COPYING).pending, parse(COPYING).out_of_sync) == (5, 2 * 2**20)
    assert parse(ALONE).protocol == ""
    assert parse(SPLIT).split_brain
    assert parse(VERSION) is None
    assert parse("") is None


def test_what_keeps_a_pair_from_being_ready_is_named():
    """By host, with what is left to copy."""
    assert pair(QUIET).problems(connected=True) == []
    assert pair(ALONE).problems(connected=False) == []
    assert pair(QUIET, COPYING).problems(connected=True) == [
        "node2: DRBD is SyncSource, Primary/Secondary, UpToDate/Inconsistent, 2.1 MB to copy"
    ]
    (restarted,) = pair(QUIET, VERSION).problems(connected=True)
    assert missing(restarted, "node2: ", "no resource r0", "has restarted") == []
    assert pair(ALONE, QUIET).problems(connected=False) == [
        "node2: DRBD is Connected, Primary/Secondary, UpToDate/UpToDate, wanted StandAlone"
    ]


def test_a_backlog_is_what_the_standby_has_not_written():
    """Requests without an answer count as much as blocks that differ."""
    assert pair(QUIET).backlog() == []
    (line,) = pair(QUIET, COPYING).backlog()
    assert missing(line, "node2: ", "5 requests pending", "2.1 MB to copy") == []


def test_a_pair_that_has_lost_a_host_has_no_backlog(monkeypatch):
    """Nobody could write it, so no drain waits for it. A reading says that the host is lost, which voids the round.

    A host that only does not answer now is an error.
    """
    assert pair(COPYING, VERSION).backlog() == []
    assert pair(COPYING, VERSION).readings()["DRBD on node2"] == "gone"
    device = pair(COPYING, COPYING)
    device.hosts[1].answers = {"*/proc/drbd*": CommandFailed(["sh"], 1, host="node2", stderr="guest node2 has ended")}

    with pytest.raises(CommandFailed, match="guest node2 has ended"):
        device.backlog()
    monkeypatch.setattr(device.hosts[1], "why_lost", lambda: "guest node2 has ended", raising=False)

    assert device.backlog() == []


def test_a_resync_that_does_not_end_is_named(monkeypatch):
    """With what is left to copy, after a time in which any disk of a test is copied."""
    monkeypatch.setattr(resource, "RESYNC_SECONDS", 0.0)

    with pytest.raises(NotReady) as caught:
        pair(COPYING).wait_for_resync()
    assert str(caught.value).startswith(
        "the resync of node1 and node2 not ready after 0 s: node1, node2: DRBD is SyncSource, Primary/Secondary, "
        "UpToDate/Inconsistent, 2.1 MB to copy"
    )


def test_a_split_brain_is_named_and_not_healed():
    """The message says what to decide, and what to type then; no command was given to either host."""
    device = pair(SPLIT, ALONE)
    device._configuration = {"node1": "/one/drbd.conf", "node2": "/two/drbd.conf"}

    with pytest.raises(ProvisionError) as caught:
        device.problems(connected=True)

    assert str(caught.value).startswith("split brain of DRBD, seen on node1: both hosts have written since they lost")
    assert "drbdadm -c /one/drbd.conf connect --discard-my-data r0" in str(caught.value)
    assert not any("drbdadm" in command for host in device.hosts for command in host.commands)


def test_a_host_that_does_not_answer_is_part_of_a_reading():
    """A round that it was lost in is void, and says so."""
    device = pair(QUIET)
    device.hosts[1].answers = {"*/proc/drbd*": CommandFailed(["sh"], 1, host="node2", stderr="guest node2 has ended")}

    readings = device.readings()

    assert readings["DRBD on node1"] == "Connected, Primary/Secondary, UpToDate/UpToDate, protocol C"
    assert readings["changes on node1"].startswith("2, the last: drbd r0/0 drbd0: disk( Inconsistent -> UpToDate )")
    assert readings["DRBD on node2"] == "unknown: sh on node2 ended with 1: guest node2 has ended"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            "version: 9.2.8 (api:2/proto:86-122)\n",
            "node1 has DRBD 9.2.8, but the topology drbd supports only version 8.4",
        ),
        (CommandFailed(["sh"], 1, stderr="modprobe: no drbd"), "node1 cannot load the kernel module drbd: modprobe: "),
    ],
)
def test_another_drbd_is_refused_by_name(answer, words):
    """Its states and commands are others."""
    device = Resource([Disk("node1", answers={"*modprobe*": answer})])

    with pytest.raises(Unsupported) as caught:
        device.make()
    assert str(caught.value).startswith(words)


def test_an_outdated_standby_is_not_promoted():
    """DRBD refuses it; the message says why, and what to do."""
    outdated = VERSION + " 0: cs:StandAlone ro:Secondary/Unknown ds:Outdated/DUnknown   r-----\n"
    device = pair(outdated)
    device._configuration = {"node1": "/one/drbd.conf"}
    device.hosts[0].answers["drbdadm*primary*"] = CommandFailed(
        ["drbdadm"], 17, stderr="0: State change failed: (-2) Need access to UpToDate data\n"
    )

    with pytest.raises(ProvisionError) as caught:
        device.promote(device.hosts[0])

    message = str(caught.value)
    assert message.startswith("DRBD does not let node1 write (StandAlone, Secondary/Unknown, Outdated/DUnknown): ")
    assert "(-2) Need access to UpToDate data" in message
    assert message.endswith("connect it to the other host first")


def test_hosts_without_a_disk_are_refused():
    """They have nothing to replicate."""
    with pytest.raises(Unsupported, match=r"^node1 has no separate disk"):
        Resource([FakeHost("node1", answers={"*modprobe*": VERSION})]).make()

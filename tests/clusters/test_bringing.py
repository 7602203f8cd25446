"""Programs of this machine on hosts of other ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_dbcluster.clusters import bringing
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from tests.support.facts import missing

INSTALLED = Release("mariadb:path", "mariadb", "10.11.6", Path("/usr/sbin"), source="PATH (/usr/sbin/mariadbd)")


def elsewhere(name="node1"):
    """A host of another machine."""
    host = FakeHost(name)
    host.machine = "10.0.0.7"
    return host


def test_a_fetched_release_is_its_entry_in_the_cache(mariadb):
    """Every host gets it."""
    hosts = [elsewhere("node1"), elsewhere("node2")]
    bringing.bring(mariadb, hosts)

    assert [host.brought for host in hosts] == [[mariadb.bin.parent]] * 2


def test_programs_of_this_machines_system_stay_here():
    """The error names the release, the host, and what can be brought."""
    with pytest.raises(ProvisionError) as raised:
        bringing.bring(INSTALLED, [FakeHost("node1"), elsewhere("node2")])

    why = ("cannot bring mariadb:path to host node2 on 10.0.0.7", "system of this machine (PATH (/usr/sbin/mariadbd))")
    fixes = ("`dbcluster fetch`", "`dbcluster releases`", "--db-release NAME=DIRECTORY", "NAME=TARBALL")
    assert missing(raised.value, *why, *fixes) == []


def test_a_system_without_apt_is_offered_no_fetch(monkeypatch):
    """A directory or a tarball remains."""
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(ProvisionError) as raised:
        bringing.bring(INSTALLED, [elsewhere()])
    assert missing(raised.value, "use the directory of an unpacked one or a tarball") == []
    assert "dbcluster fetch" not in str(raised.value)


@pytest.mark.parametrize("host", [FakeHost(), elsewhere()])
def test_programs_that_a_host_sees_need_not_be_brought(host):
    """Those of this machine on its own hosts, and those of an image anywhere."""
    release = dataclasses.replace(INSTALLED, image="sha256:1") if host.machine else INSTALLED
    bringing.bring(release, [host])

    assert host.brought == []


def test_a_program_that_a_release_lacks_comes_from_another_one(mariadb, mysql):
    """From the cache alone: what is installed here is not there."""
    host = elsewhere()

    assert (
        bringing.copy_program("mysqlrouter", "mysql", mariadb, host)
        == find.newest_with("mysqlrouter", "mysql").bin / "mysqlrouter"
    )
    assert host.brought == [find.newest_with("mysqlrouter", "mysql").bin.parent]
    assert bringing.copy_program("no-such-program", "mysql", mariadb, host) is None

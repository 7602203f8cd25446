"""How terminals are started: where they connect, what is on the command line, and what is refused before."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.sysbench_driver import Call
from pytest_dbcluster.workloads.workload import Setting
from tests.workloads.sysbench_driver.calls import SCHEMA, call, in_the_middle, setting_of


def test_passwords_are_not_on_the_command_line(standalone, filled):
    """They are in a file that nobody else can read."""
    setting = filled(standalone)
    seen = []

    def look():
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):  # one that has ended
                seen.append(" ".join(child.cmdline()))

    looked = in_the_middle(look, standalone.nodes[0])
    sysbench_driver.run(call(setting, "oltp_point_select"), setting, seconds=2, rate=50)
    looked.join()

    assert len([line for line in seen if "oltp.lua" in line]) == 1
    assert not [line for line in seen if standalone.nodes[0].password in line]
    assert Path(f"{setting.client.directory}/sysbench.cnf").stat().st_mode & 0o077 == 0


def test_more_threads_than_connections_are_refused(galera2, filled):
    """Which node, how many it takes, and what to set; each node has its share of the threads."""
    setting = filled(galera2)
    with pytest.raises(ConfigError) as caught:
        sysbench_driver.run(call(setting, "oltp_point_select", threads=400), setting, seconds=0.1)

    said = re.fullmatch(
        r"oltp_point_select: 400 threads are 200 connections to node1, which accepts 151, (\d+) of them in use: "
        r"set max_connections=(\d+) or more, or use fewer threads",
        str(caught.value),
    )
    assert int(said[2]) == 200 + int(said[1])


def test_more_threads_than_a_proxy_passes_are_refused():
    """The proxy would let the rest of them wait; the servers behind it are not even asked."""
    many = Call("x", "oltp.lua", 1600, SCHEMA, [Endpoint("h", 99, "u", "p")])
    with pytest.raises(ConfigError, match="x: 1600 threads are 1600 connections to a proxy, which accepts 1500"):
        sysbench_driver._require_room(many, cluster_of(2, 2, "proxy"), {})


ENDS = [Endpoint("a", 1, "u", "p"), Endpoint("a", 2, "u", "p"), Endpoint("b", 1, "u", "p"), Endpoint("b", 3, "u", "p")]


@pytest.mark.parametrize(
    ("ends", "hosts", "ports"), [(ENDS[:1], "a", "1"), (ENDS[:2], "a", "1,2"), ([ENDS[0], ENDS[2]], "a,b", "1")]
)
def test_sysbench_connects_to_each_port_of_each_host(ends, hosts, ports):
    """Nodes of one machine, or one port of many machines."""
    found = sysbench_driver._addresses(Call("x", "oltp.lua", 1, SCHEMA, ends))

    assert found == {"mysql-host": hosts, "mysql-port": ports}


def test_endpoints_that_sysbench_cannot_be_told_are_refused():
    """It would connect to places that nobody named."""
    with pytest.raises(Unsupported, match="several hosts at one port, or several ports of one host, not to a:1"):
        sysbench_driver._addresses(Call("x", "oltp.lua", 1, SCHEMA, ENDS))


def cluster_of(nodes, writers, proxy):
    """A cluster as far as endpoints are concerned."""
    made = [SimpleNamespace(endpoint=Endpoint("h", number, "admin", "p", tls=True)) for number in range(nodes)]
    return SimpleNamespace(
        nodes=made, writers=made[:writers], proxy=proxy, writer=lambda: "writer", reader=lambda: "reader"
    )


@pytest.mark.parametrize(
    ("to", "writes", "writers", "proxy", "chosen"),
    [
        ("all", True, 3, None, [0, 1, 2]),
        ("all", True, 1, None, [0]),
        ("all", False, 1, "proxy", [0, 1, 2]),
        (None, True, 3, None, [0, 1, 2]),
        (None, False, 1, None, [0, 1, 2]),
        (None, True, 1, "proxy", ["writer"]),
        (None, True, 3, "proxy", ["reader"]),
        (None, False, 1, "proxy", ["reader"]),
        ("writer", False, 3, None, ["writer"]),
        ("reader", True, 3, None, ["reader"]),
    ],
)
def test_where_threads_connect(to, writes, writers, proxy, chosen):
    """What writes goes where writes are taken; a proxy is used when nothing else is said."""
    found = sysbench_driver.endpoints(cluster_of(3, writers, proxy), to, writes=writes)

    assert [getattr(one, "port", one) for one in found] == chosen
    assert {getattr(one, "user", LOAD) for one in found} == {LOAD}


@pytest.mark.parametrize(
    ("says", "scripts", "words"),
    [
        (
            "sysbench 0.4.12",
            True,
            "prints 'sysbench 0.4.12', but workloads need sysbench 1.0 or later; .*`dbcluster fetch",
        ),
        ("1.1.0-dev", False, r"has no scripts \(share/sysbench\)"),
    ],
)
def test_an_old_or_bare_sysbench_is_refused(says, scripts, words, standalone, client, tmp_path, monkeypatch):
    """Its own --version decides."""
    program = tmp_path / "sysbench"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    found = Release("sysbench", "sysbench", "1", tmp_path, scripts=tmp_path if scripts else None, source="PATH")
    monkeypatch.setattr(find, "find", lambda name, **_: found)

    with pytest.raises(Unsupported, match=words):
        sysbench_driver.sysbench(setting_of(standalone, client))


def test_every_host_of_the_load_generator_gets_sysbench_and_our_scripts():
    """They may be on other machines, which have neither."""
    hosts = [FakeHost(name, answers={"*--version": "sysbench 1.0.20"}) for name in ("client", "other")]
    tool = sysbench_driver.sysbench(Setting(None, hosts[0], None, "quick", print, others=(hosts[1],)))

    assert [host.brought for host in hosts] == [[tool.bin.parent, sysbench_driver.LUA]] * 2


def test_a_missing_sysbench_is_said_with_the_ways_out(standalone, client, tmp_path, monkeypatch):
    """Nothing in the cache, no apt, none on PATH."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        (Unsupported, ProvisionError), match=r"sysbench cannot be fetched: .*What you can do: install sysbench"
    ):
        sysbench_driver.sysbench(setting_of(standalone, client))

"""Clusters that stay: usable by the printed commands until they are ended, and nothing of one that did not come up."""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.cli import main
from pytest_dbcluster.cli.up import leave_running
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from tests.support import engines, paths
from tests.support.command import ROOT, dbcluster, left, sleeping_run
from tests.support.facts import missing

RELEASE = ReleaseName("mariadb", "10.11")
# A shell lets its background commands ignore Ctrl-C, and what they start inherits that.
UP = """
import signal
from pytest_dbcluster.cli import main as cli
signal.signal(signal.SIGINT, signal.default_int_handler)
raise SystemExit(cli.main(["up", "galera", "--nodes", "2"]))
"""


def test_a_kept_cluster_has_the_options_of_its_parity(data):
    """As in a run: what is tried by hand is the server that is measured."""
    told = []
    text = leave_running(ClusterSpec("standalone", release=RELEASE, parity="normalised"), {}, progress=told.append)
    command = re.search(r"^  node1 +(\S+ --defaults-file=.*)$", text, re.MULTILINE)[1]
    asked = [*shlex.split(command), "-Ne", "SELECT @@sync_binlog, @@innodb_snapshot_isolation"]
    options = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert main.main(["down", "--all"]) == 0

    assert options == "1\t0\n"
    assert any("ready in" in line for line in told)


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        (
            ClusterSpec("async_replication", nodes=1, release=RELEASE),
            ConfigError,
            "needs 2 nodes or more, a primary and its",
        ),
        (ClusterSpec("group_replication", release=RELEASE), Unsupported, "mariadb servers have no Group Replication"),
        (ClusterSpec("standalone", release=RELEASE).with_needs(iops=9), Unsupported, "does not offer here"),
    ],
    ids=["nodes", "release", "hosts"],
)
def test_what_cannot_be_is_refused_before_anything_starts(data, monkeypatch, spec, error, words):
    """The command refuses what a run refuses, and leaves nothing behind."""
    monkeypatch.setattr(LocalProvisioner, "offers", frozenset())
    told = []
    with pytest.raises(error, match=words):
        leave_running(spec, {}, progress=told.append)

    assert told == []
    assert runs.list_runs() == []


def test_a_galera_cluster_stays_until_it_is_ended(called, data):
    """The printed commands work as they stand, ps lists the cluster, down leaves nothing of it."""
    up = dbcluster(
        "up", "galera", "--nodes", "2", "--proxy", "haproxy", "--name", "mine", "--option", "max_connections=77"
    )
    assert up.returncode == 0, up.stderr
    run_id = re.search(r"run (\w+)", up.stdout)[1]
    commands = dict(re.findall(r"^  (node\d|writer|reader) +(\S+ --defaults-file=.*)$", up.stdout, re.MULTILINE))
    asked = {
        name: subprocess.run(
            [*shlex.split(command), "-Ne", "SELECT CONCAT(@@wsrep_node_name, ' ', @@max_connections)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for name, command in commands.items()
    }
    client_cnf = data / run_id / "client1.cnf"
    mode = stat.S_IMODE(client_cnf.stat().st_mode)
    password = re.search("password = (.*)", client_cnf.read_text())[1]
    written = (data / run_id / kept.FILE).read_text()
    listed = called("ps").stdout
    named_again = called("up", "standalone", "--name", "mine")
    cache_in_use = called("cache", "clean")
    down = called("down", "mine")

    assert list(commands) == ["node1", "node2", "writer", "reader"]
    assert asked == {**{f"node{n}": f"node{n} 77" for n in (1, 2)}, "writer": "node1 77", "reader": asked["reader"]}
    assert password not in up.stdout + up.stderr + written
    assert mode == 0o600
    assert re.search(rf"{run_id} +mine +galera +2 +mariadb:10.11 +\d+ s +\w+ +kept\n", listed)
    assert (named_again.returncode, missing(named_again.stderr, "kept cluster", "the name 'mine'")) == (2, [])
    assert (cache_in_use.returncode, f"in use by run {run_id}" in cache_in_use.stderr) == (2, True)
    assert (down.returncode, down.stdout) == (0, f"ended run {run_id} (4 processes)\n")
    assert not left(run_id)
    assert not (data / run_id).exists()


def interfaces(run_id):
    """The interfaces of this machine that a run has made."""
    return [name for _, name in socket.if_nameindex() if run_id in name]


def seconds_of_a_commit(command):
    """The time of one on a table of its own, at least, of ten."""
    statements = "CREATE OR REPLACE TABLE test.one (a INT PRIMARY KEY);" + "".join(
        f"SET @began = SYSDATE(6); INSERT INTO test.one VALUES ({n}); "
        "SELECT TIMESTAMPDIFF(MICROSECOND, @began, SYSDATE(6)) / 1e6;"
        for n in range(10)
    )
    asked = [*shlex.split(command), "-Ne", f"CREATE DATABASE IF NOT EXISTS test; {statements}"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return min(map(float, said.split()))


def test_a_cluster_over_distance_stays_with_its_distance(called, data):
    """Its namespaces and its router outlive the command, and end with it: ps lists it, down leaves nothing."""
    if reason := paths.missing():
        pytest.skip(reason)
    up = dbcluster("up", "galera", "--nodes", "2", "--rtt", "0.05", "--name", "far", seconds=300)
    assert up.returncode == 0, up.stderr
    run_id = re.search(r"run (\w+)", up.stdout)[1]
    command = re.search(r"^  node1 +(\S.* --defaults-file=.*)$", up.stdout, re.MULTILINE)[1]
    made, took = interfaces(run_id), seconds_of_a_commit(command)
    listed = called("ps").stdout
    down = called("down", "far")

    assert "network of far: rtt=0.05; node1-node2 50.0 ms required, " in up.stderr
    assert len(made) == (2 if user_namespace.root() else 0)
    assert took > 0.045
    assert re.search(rf"{run_id} +far +galera +2 +mariadb:10.11 +\d+ s +\w+ +kept\n", listed)
    assert (down.returncode, down.stdout.startswith(f"ended run {run_id} (")) == (0, True)
    assert not left(run_id)
    wait.until(lambda: interfaces(run_id), "the end of the interfaces", seconds=60)
    assert not (data / run_id).exists()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough), signal.SIGKILL]
)
def test_an_up_that_is_interrupted_leaves_nothing(data, number):
    """Ctrl-C while the servers start ends them, as does any other end of the command."""
    up = subprocess.Popen(
        [sys.executable, "-c", UP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    limit = time.monotonic() + 200
    while not (started := [run for run in runs.list_runs() if len(run.processes()) >= 2]) and time.monotonic() < limit:
        time.sleep(0.05)
    up.send_signal(number)
    output, errors = up.communicate(timeout=100)
    while (data / started[0].run_id).exists() and time.monotonic() < limit:
        time.sleep(0.02)

    assert output == ""
    wait.until(lambda: [str(one) for one in left(started[0].run_id)], "the end of its programs", seconds=60)
    assert not list(data.iterdir())
    if number == signal.SIGINT:
        assert up.returncode == main.INTERRUPTED
        assert errors.endswith("dbcluster: interrupted\n")


def test_a_server_that_does_not_start_leaves_nothing(data):
    """A value that the server refuses is an error with its own words, and no run stays."""
    up = dbcluster("up", "standalone", "--option", "innodb_data_file_path=nonsense:x")

    assert up.returncode == 1
    assert "Traceback" not in up.stderr
    assert "innodb_data_file_path" in up.stderr
    assert not list(data.iterdir())


def test_what_is_written_is_what_is_read(tmp_path):
    """A written record is read back unchanged; a directory without a record has no clusters."""
    one = kept.Kept(
        "ab12", "mine", "galera", "mariadb:10.11", "10.11.19", "/bin/mariadb", "/x/client1.cnf", "/x", 1.0,
        (kept.Listener("node1", "127.0.0.1", 1234, "/x/log"),), (kept.Listener("writer", "127.0.0.1", 1235),), "http://x/",
    )  # fmt: skip
    (tmp_path / kept.FILE).write_text(kept.json.dumps([kept.dataclasses.asdict(one)]))

    assert kept.read(tmp_path) == [one]
    assert kept.read(tmp_path / "nowhere") == []


def test_the_description_can_be_pasted(tmp_path):
    """Paths with blanks are quoted, each listener has a line, and the last line stops the cluster."""
    one = kept.Kept(
        "ab12", "mine", "standalone", "mariadb:10.11", "10.11.19", "'/my bin/mariadb'", "/x/client1.cnf", "/x", 1.0,
        (kept.Listener("node1", "127.0.0.1", 1234, "/x/log"),),
    )  # fmt: skip

    assert kept.describe(one).splitlines() == [
        "cluster mine (run ab12): 1 x mariadb:10.11 10.11.19, standalone",
        "  node1    '/my bin/mariadb' --defaults-file=/x/client1.cnf --host=127.0.0.1 --port=1234",
        "logs",
        "  node1    /x/log",
        "end it: dbcluster down ab12",
    ]


def test_a_run_that_is_not_to_be_kept_cannot_be_left(data):
    """A run without keep is refused, because its servers end with it; the error says how to keep it."""
    provisioner = sleeping_run(leave=False)
    try:
        with pytest.raises(ProvisionError, match="only a run made with keep=True"):
            provisioner.leave()
    finally:
        provisioner.close()


def test_a_name_of_two_runs_is_refused(tmp_path):
    """An ambiguous name is refused; the error lists the ids to choose from."""
    both = []
    for run_id in ("aa", "bb"):
        one = kept.Kept(run_id, "mine", "galera", "m", "1", "c", "f", "d", 1.0, ())
        (tmp_path / run_id).mkdir()
        (tmp_path / run_id / kept.FILE).write_text(kept.json.dumps([kept.dataclasses.asdict(one)]))
        both.append(runs.Run(tmp_path / run_id, 1, 1.0, kept=True))

    with pytest.raises(ConfigError, match="'mine' is the name of 2 runs; choose one by its id: aa 'mine', bb 'mine'"):
        kept.choose("mine", both)
    assert kept.choose("bb", both).run_id == "bb"


def test_a_cluster_in_containers_stays_until_it_is_ended(called, data):
    """What is printed works when it is typed, with the client of the image; down leaves no container, no network."""
    if reason := engines.missing() or engines.no_image("mysql:9.7"):
        pytest.skip(reason)
    up = dbcluster("up", "standalone", "--release", "mysql:9.7", "--provisioner", "container", "--name", "boxed")
    assert up.returncode == 0, up.stderr
    run_id = re.search(r"run (\w+)", up.stdout)[1]
    (command,) = re.findall(r"^  node1 +(\S.* --defaults-file=.*)$", up.stdout, re.MULTILINE)
    # A terminal, as a person has: the command asks for one.
    typed = subprocess.run(
        ["script", "-qec", f"{command} -Ne 'SELECT @@version'", "/dev/null"], capture_output=True, text=True, check=True
    )
    listed = called("ps").stdout
    with contextlib.closing(engine.connect()) as answering:
        there = engines.ours(answering, run_id)
        reaped = called("reap")
        assert engines.ours(answering, run_id) == there
        down = called("down", "boxed")
        assert engines.ours(answering, run_id) == []

    assert "| 9.7." in typed.stdout
    assert re.search(rf"{run_id} +boxed +standalone +1 +mysql:9\.7 +\d+ s +\w+ +kept\n", listed)
    assert len(there) == 2
    (line,) = reaped.stdout.splitlines()
    assert missing(line, "nothing to remove", "no dead run") == []
    assert down.returncode == 0
    assert not left(run_id)
    assert not (data / run_id).exists()

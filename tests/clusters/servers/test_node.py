"""One server on a host that does nothing: its my.cnf, its command line, its end, its error log."""

from __future__ import annotations

import dataclasses
import signal
import tempfile
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.servers.cnf_file import read
from pytest_dbcluster.clusters.servers.connection import NoAnswer, SQLError
from pytest_dbcluster.clusters.servers.node import LAST_LINES, Node, merge
from pytest_dbcluster.errors import ConfigError, NodeDied, NotReady, ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProcess
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.hosts.provisioners.vm.host import GuestHost
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up
from tests.support.facts import missing


@pytest.fixture
def host():
    """A host that records its calls."""
    return FakeHost()


@pytest.fixture
def node(host, mariadb):
    """A node on that host, not started."""
    return Node("node1", host, mariadb, 3306, "secret")


def options_of(host):
    """The server options of the my.cnf that was pushed."""
    server = host.files["/fake/my.cnf"].decode().partition("[mysqld]\n")[2].partition("\n\n")[0]
    return dict(line.split(" = ", 1) if " = " in line else (line, "") for line in server.splitlines())


def test_every_server_gets_the_same_pinned_options(node, host):
    """A measurement must not depend on the host; what a spec asks for wins over them."""
    node.configure({"binlog_format": "MIXED", "skip_name_resolve": ""})
    found = options_of(host)

    assert found["bind_address"] == "127.0.0.1"
    assert found["innodb_buffer_pool_dump_at_shutdown"] == "OFF"
    assert found["binlog_format"] == "MIXED"
    assert found["skip_name_resolve"] == ""
    assert (found["datadir"], found["port"], found["log_error"]) == ("/fake/data", "3306", "/fake/error.log")
    assert found["socket"] == "../sql.sock"


def test_a_server_without_positions_of_its_log_is_flushed_when_the_statement_returns(host, mysql):
    """MySQL 8.0.29 reports no positions, 8.0.30 does; a log that is not on disk yet is named with both."""
    old, new = (
        Node("node1", host, dataclasses.replace(mysql, version=version), 3306, "secret")
        for version in ("8.0.29", "8.0.30")
    )
    lagging = [("Innodb_redo_log_current_lsn", "9"), ("Innodb_redo_log_flushed_to_disk_lsn", "7")]

    assert old.flush_backlog([]) == []
    assert new.flush_backlog(lagging) == ["node1: log flushed to 7 of 9"]


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_server_leaves_nothing_outside_its_hosts_directory(vendor, request, tmp_path, monkeypatch):
    """All files are in the host's directory, also a deep one: the socket's path is relative and short."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / ("deep" * 30)))
    local = LocalProvisioner()
    try:
        cluster = bring_up(ClusterSpec("standalone"), request.getfixturevalue(vendor), local, options={})
        host, port = cluster.hosts[0], cluster.nodes[0].port

        assert Path(f"{host.directory}/sql.sock").is_socket()
        assert list(Path(tempfile.gettempdir()).glob(f"*{port}*sock*")) == []
    finally:
        local.close()


def test_the_password_is_in_no_command_and_no_repr(node, host):
    """The my.cnf has no password either."""
    node.configure({})
    node.start()

    assert "secret" not in " ".join(host.spawned[0])
    assert b"secret" not in host.files["/fake/my.cnf"]
    assert "secret" not in repr(node.endpoint)


@pytest.mark.parametrize(("root", "words"), [(True, ["--user=root"]), (False, [])])
def test_a_server_is_told_when_it_may_run_as_root(node, host, mariadb, root, words):
    """Without --user=root the server refuses to run as root."""
    host.root = root
    node.start("--wsrep-new-cluster")

    assert host.spawned == [
        [str(mariadb.bin / "mariadbd"), "--defaults-file=/fake/my.cnf", *words, "--wsrep-new-cluster"]
    ]


@pytest.mark.parametrize(
    ("status", "words"),
    [(-9, "was ended by SIGKILL"), (-6, "was ended by SIGABRT"), (1, "ended with 1"), (0, "ended with 0")],
)
def test_the_end_of_a_server_shows_the_last_lines_of_its_log(node, host, status, words):
    """The error says how the server ended and where the whole log is."""
    host.files["/fake/error.log"] = "".join(f"line {n}\n" for n in range(40)).encode()
    node.process = FakeProcess(7, ends=status)

    with pytest.raises(NodeDied) as caught:
        node.alive()
    lines = [f"line {n}" for n in range(40 - LAST_LINES, 40)]
    assert words in str(caught.value)
    assert "(/fake/error.log)" in str(caught.value)
    assert str(caught.value).split("\n    ")[1:] == lines
    assert caught.value.last_lines == lines


def test_errors_far_above_the_last_lines_are_shown_too(node, host):
    """The cause of an end is often far above the last lines."""
    lines = ["0 [ERROR] the cause", *(f"0 [Note] {n}" for n in range(LAST_LINES))]
    host.files["/fake/error.log"] = "\n".join(["0 [Note] begun", *lines, ""]).encode()

    assert node.last_lines() == lines


def test_a_server_without_a_log_says_so(node):
    """The server may die before it writes a log."""
    node.process = FakeProcess(7, ends=127)

    with pytest.raises(NodeDied, match=r"\(its error log is empty\)$"):
        node.alive()


def test_a_server_that_runs_is_alive(node):
    """A running server raises no error."""
    node.process = FakeProcess(7)

    assert node.alive() is None
    assert node.running is True


def test_a_server_without_an_answer_is_not_asked_again(node, monkeypatch):
    """Only a lost connection may be that of a dead server; one that gets no answer in time is an error at once."""
    asked = []

    def fails(error):
        def query(statement, seconds):
            raise error

        monkeypatch.setattr(node.sql, "query", query)
        with pytest.raises(SQLError) as caught:
            node.query("SELECT 1")
        return caught.value is error

    monkeypatch.setattr(node, "raise_if_dead", lambda: asked.append("dead?"))
    assert fails(NoAnswer("node1", "SELECT 1", 3024, 1.0))
    assert asked == []
    assert fails(SQLError("node1", "SELECT 1", 2013, "Lost connection"))
    assert asked == ["dead?"]


def test_kill_and_stop_signal_a_server_that_runs(node):
    """A process is signalled once; an ended process is not."""
    node.process = process = FakeProcess(7)
    node.kill()
    node.stop()
    assert process.signals == [signal.SIGKILL]

    node.process = process = FakeProcess(8)
    node.stop()
    assert process.signals == [signal.SIGTERM]


def test_a_server_that_survives_sigkill_is_an_error(node, monkeypatch):
    """Its process may wait for a disk that does not answer, so nobody waits for ever."""
    monkeypatch.setattr("pytest_dbcluster.clusters.servers.node.KILL_SECONDS", 0.05)
    process = FakeProcess(7)
    process.signal = process.signals.append
    node.process = process

    with pytest.raises(ProvisionError) as caught:
        node.kill()
    assert missing(str(caught.value), "node1", "process 7", "SIGKILL") == []
    with pytest.raises(ProvisionError):
        node.stop(0.01)
    assert process.signals[-2:] == [signal.SIGTERM, signal.SIGKILL]


def test_errors_of_the_log_are_told_once(node, host):
    """Only [ERROR] lines since the last call are returned, no notes and warnings."""
    host.files["/fake/error.log"] = b"0 [Note] a\n0 [ERROR] b\n"
    assert node.new_errors() == ["0 [ERROR] b"]
    host.files["/fake/error.log"] += b"0 [Warning] c\n0 [ERROR] d\n"

    assert node.new_errors() == ["0 [ERROR] d"]
    assert node.new_errors() == []


def test_no_error_is_lost_behind_bytes_that_are_no_text(node, host):
    """The log position is counted in bytes, not in decoded characters."""
    host.files["/fake/error.log"] = b"0 [Note] \xff\xfe\xfd\xfc\n"
    node.new_errors()
    host.files["/fake/error.log"] += b"0 [ERROR] x\n"

    assert node.new_errors() == ["0 [ERROR] x"]


def test_a_line_that_is_being_written_is_read_when_it_is_whole(node, host):
    """An incomplete line is returned only once it is complete."""
    host.files["/fake/error.log"] = b"0 [Note] a\n0 [ERR"
    assert node.new_errors() == []
    host.files["/fake/error.log"] += b"OR] b\n"

    assert node.new_errors() == ["0 [ERROR] b"]


def test_rows_are_read_by_column(standalone):
    """Names in lower case, whatever the server writes them in; NULL is empty."""
    found = standalone.nodes[0].records("SELECT 1 AS One, NULL AS Two, 'x' AS three UNION ALL SELECT 2, 'y', ''")

    assert found == [{"one": "1", "two": "", "three": "x"}, {"one": "2", "two": "y", "three": ""}]
    assert standalone.nodes[0].records("SELECT 1 FROM DUAL WHERE 1 = 0") == []


def test_lists_are_joined():
    """The user's provider options and plugins come after the topology's; of other options the user's wins."""
    needed = {"wsrep_provider_options": "base_port=1", "plugin_load_add": "a.so", "wsrep_on": "ON", "b": "1"}
    options = {"wsrep_provider_options": "gcache.size=1G", "plugin_load_add": "c.so", "b": "2"}

    assert merge(needed, options) == {
        "wsrep_provider_options": "base_port=1;gcache.size=1G",
        "plugin_load_add": "a.so;c.so", "wsrep_on": "ON", "b": "2",
    }  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"log_bin": "/else/bin"},
        {"loose_general_log_file": "/else/log"},
        {"innodb_undo_directory": "sub"},
        {"innodb_data_file_path": "../ibdata1:12M:autoextend"},
        {"wsrep_provider_options": "gcache.dir=/else"},
        {"made_up": "a/b"},
        {"sync_binlog": "1\nlog_bin=/else/bin"},
        {"!include": "x"},
        {"port": "1"},
        {"bind_address": "0.0.0.0"},
        {"loose_datadir": "x"},
    ],
)
def test_no_my_cnf_is_written_that_leads_out_of_the_node(node, host, options):
    """Whatever checked the options before, this is the last check; nothing is written then."""
    with pytest.raises(ConfigError, match=r"^option "):
        node.configure({}, options)

    assert host.files == {}


def test_options_of_ours_may_name_any_file(node, host):
    """The topology's own options are not the user's, and the node's address and paths stand last."""
    node.configure({"wsrep_provider": "/usr/lib/galera/libgalera_smm.so"}, {"sync_binlog": "1", "innodb_io": "x"})

    names = list(options_of(host))
    assert options_of(host)["wsrep_provider"] == "/usr/lib/galera/libgalera_smm.so"
    assert names.index("bind_address") > names.index("innodb_io") > 0


def test_values_are_written_so_that_the_server_reads_the_same(node, host, tmp_path):
    """A ``#`` is no comment then, and a backslash stays one."""
    node.configure({}, {"sql_mode": "SET @a = '#' \\"})
    (tmp_path / "my.cnf").write_bytes(host.files["/fake/my.cnf"])

    (entry,) = [one for one in read(tmp_path / "my.cnf").entries if one.name == "sql_mode"]
    assert entry.value == "SET @a = '#' \\"


def test_a_server_on_a_slow_host_has_more_time(host, mariadb):
    """A server in a guest takes three to four times as long, and is not taken for one that hangs."""
    node = Node("node1", host, mariadb, 1, "secret")  # nobody listens on this port
    node.process = host.next_process
    for patience in (1.0, 3.0):
        host.patience = patience
        with pytest.raises(NotReady, match=rf"^node node1 not ready after {0.1 * patience:g} s: node1: "):
            node.wait_answering(0.1)
    assert GuestHost.patience > 3

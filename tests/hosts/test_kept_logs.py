"""Logs of failed clusters: which files are kept, where, and what the error says of them."""

from __future__ import annotations

import pytest

from pytest_dbcluster import redaction
from pytest_dbcluster.errors import ConfigError, NodeDied, ProvisionError, SeriesVoid, Unsupported
from pytest_dbcluster.hosts.kept_logs import MOST, KeptLogs
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from tests.support.facts import missing

TEST = "suites/test_a.py::test_it[mariadb:10.11-write]"


@pytest.fixture
def hosts():
    """Two nodes with an error log; the first has a my.cnf with a password."""
    made = {name: FakeHost(name, directory=f"/gone/{name}") for name in ("node1", "node2")}
    password = redaction.new_password()
    made["node1"].files["/gone/node1/my.cnf"] = f"[mysqld]\nwsrep_sst_auth = dbcluster:{password}\n".encode()
    for name, host in made.items():
        host.files[f"/gone/{name}/error.log"] = f"{name} [ERROR] why\n".encode()
    return made


@pytest.fixture
def logs(tmp_path):
    """Where the logs of one test are kept."""
    return KeptLogs(tmp_path / "logs", TEST)


def test_the_error_names_a_log_that_stays(hosts, logs):
    """The path of the copy replaces that of the log, in the message and in the error; my.cnf has no password."""
    error = NodeDied("node1", "was ended by SIGKILL", "/gone/node1/error.log", ["why"])
    logs.keep("galera2", hosts, error)

    kept = logs.directory / "suites_test_a.py_test_it_mariadb_10.11-write" / "galera2"
    assert error.log == str(kept / "node1" / "error.log")
    assert missing(error, "node node1", "SIGKILL", f"its error log ({kept}/node1/error.log):\n    why") == []
    assert "/gone/" not in str(error)
    assert (kept / "node1" / "my.cnf").read_text() == "[mysqld]\nwsrep_sst_auth = dbcluster:***\n"
    assert (kept / "node2" / "error.log").read_text() == "node2 [ERROR] why\n"


def test_an_error_that_names_no_log_gets_their_place(hosts, logs):
    """A failed check says where to look."""
    error = SeriesVoid("tables differ")
    logs.keep("galera2", hosts, error)

    [kept] = logs.directory.glob("*/galera2")
    assert str(error) == f"tables differ\nlogs of its nodes: {kept}"


def test_an_error_is_kept_once(hosts, logs):
    """It passes several places on its way up; a second failure of the same cluster has a place of its own."""
    for error in (ProvisionError("first"), ProvisionError("second")):
        for _ in range(2):
            logs.keep("galera2", hosts, error)

    assert sorted(path.name for path in logs.directory.glob("*/*")) == ["galera2", "galera2-2"]


@pytest.mark.parametrize("error", [ConfigError("x"), Unsupported("x"), KeyboardInterrupt("x")])
def test_what_no_log_explains_keeps_none(hosts, logs, error):
    """A wrong option or Ctrl-C is no failure of a server."""
    logs.keep("galera2", hosts, error)

    assert not logs.directory.exists()
    assert str(error) == "x"


def test_the_end_of_a_long_log_is_kept(hosts, logs):
    """At most MOST bytes of each file."""
    hosts["node1"].files["/gone/node1/error.log"] = b"x" * MOST + b"the end"
    logs.keep("galera2", hosts, ProvisionError("x"))

    [kept] = logs.directory.glob("*/*/node1/error.log")
    assert kept.stat().st_size == MOST
    assert kept.read_text().endswith("the end")


def test_copies_that_cannot_be_written_hide_no_error(hosts, tmp_path):
    """On a full disk, or with a file in the way, the error stays as it was."""
    (tmp_path / "logs").touch()
    error = ProvisionError("what happened")
    KeptLogs(tmp_path / "logs", TEST).keep("galera2", hosts, error)

    assert str(error) == "what happened"


def test_a_host_that_is_gone_hides_no_error(hosts, logs, monkeypatch):
    """What the other hosts have is kept."""

    def gone(path, **_):
        raise ProvisionError("no such container")

    monkeypatch.setattr(hosts["node1"], "pull", gone)
    error = ProvisionError("what happened")
    logs.keep("galera2", hosts, error)

    assert [path.parent.name for path in logs.directory.rglob("error.log")] == ["node2"]
    assert str(error).startswith("what happened\nlogs of its nodes: ")

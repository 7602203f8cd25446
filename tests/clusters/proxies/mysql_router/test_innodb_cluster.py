"""How a group becomes an InnoDB Cluster and a router is made from it: what is called, told and answered."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_dbcluster import redaction
from pytest_dbcluster.clusters.proxies.mysql_router import innodb_cluster
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from tests.support.facts import missing

KNOWS_ALL = " ".join(innodb_cluster.LEFT_OUT)
ROUTER = Path("/opt/mysqlrouter")
SHELL = Path("/opt/mysqlsh")


class Told(FakeHost):
    """A host that also writes down what programs were given to read, and in which environment."""

    def __init__(self, answers=None):
        super().__init__("router", directory="/fake/router", answers=answers)
        self.read = []
        self.environments = []

    def run(self, command, *, seconds=60.0, environment=None, text=""):
        """Record and answer."""
        self.read.append(text)
        self.environments.append(dict(environment or {}))
        return super().run(command, seconds=seconds, environment=environment, text=text)


@pytest.fixture
def password(monkeypatch):
    """The account's, known to this test alone as one that is never shown."""
    monkeypatch.setattr(redaction, "_KNOWN", set())
    return redaction.remember("0123456789abcdef")


@pytest.fixture
def primary(mysql, password):
    """The member that takes writes; nothing is asked of it."""
    return Node("node1", FakeHost(address="10.0.0.1"), mysql, 3307, password)


class FakeShell:
    """The objects that MySQL Shell gives to a script; each call is written down."""

    def __init__(self):
        self.calls = []

    def connect(self, data):
        """shell.connect"""
        self.calls.append(("connect", data))

    def create_cluster(self, name, options):
        """dba.create_cluster; what it returns is the cluster."""
        self.calls.append(("create_cluster", name, options))
        return self

    def set_routing_option(self, name, value):
        """Cluster.set_routing_option"""
        self.calls.append(("set_routing_option", name, value))


def test_the_shell_adopts_the_group_without_changing_its_servers(primary, password):
    """No plugin is installed, and routers will not write to the group while rounds are measured."""
    host, shell = Told(), FakeShell()
    innodb_cluster.adopt(host, SHELL, primary, {"adoptFromGR": True})
    exec(host.read[0], {"shell": shell, "dba": shell})

    where = {"scheme": "mysql", "host": "10.0.0.1", "port": 3307, "user": "dbcluster", "password": password}
    assert shell.calls == [
        ("connect", where),
        ("create_cluster", "dbcluster", {"adoptFromGR": True, "disableClone": True}),
        ("set_routing_option", "stats_updates_frequency", 0),
    ]


def test_the_shell_reads_its_password_and_asks_nothing(primary, password):
    """A command line is seen by everybody; and what the shell writes lies in the proxy's directory."""
    host = Told()
    innodb_cluster.adopt(host, SHELL, primary, {"adoptFromGR": True})

    assert host.commands == [["/opt/mysqlsh", "--py", "--no-wizard"]]
    assert password in host.read[0]
    assert host.environments[0]["MYSQLSH_USER_CONFIG_HOME"] == "/fake/router"


def test_a_group_that_is_not_adopted_is_answered_in_the_shells_words(primary, password):
    """The password is not among them; without the shell the router would work."""
    words = f"Dba.create_cluster: Shell 8.4.8 is older than 9.7.4 (user dbcluster, {password})"
    host = Told({"*mysqlsh*": CommandFailed(["/opt/mysqlsh", "--py"], 1, stderr=words, host="router")})

    with pytest.raises(ProvisionError) as caught:
        innodb_cluster.adopt(host, SHELL, primary, {"adoptFromGR": True})
    message = str(caught.value)
    assert "the group of node1" in message
    assert "/opt/mysqlsh --py on router ended with 1" in message
    assert "Shell 8.4.8 is older than 9.7.4 (user dbcluster, ***)" in message
    assert "to use static routes, remove mysqlsh from PATH" in message
    assert caught.value.__cause__ is None


def test_a_router_is_made_in_the_directory_of_its_host(primary, password):
    """It listens there only, adds no TLS, and has the listeners of our roles alone; the password is read."""
    host = Told({"* --help": KNOWS_ALL})
    file = innodb_cluster.bootstrap(host, ROUTER, primary, {"routing:bootstrap_rw.bind_port": 7001})

    assert file == "/fake/router/router/mysqlrouter.conf"
    assert host.commands[1] == [
        *("/opt/mysqlrouter", "--bootstrap", "dbcluster@10.0.0.1:3307", "--directory", "/fake/router/router"),
        *("--name", "dbcluster", "--report-host", "127.0.0.1", "--conf-bind-address", "127.0.0.1"),
        *("--client-ssl-mode", "PASSTHROUGH", "--server-ssl-mode", "AS_CLIENT"),
        *("--disable-rest", "--disable-rw-split", "--conf-skip-x-protocol"),
        "--conf-set-option=DEFAULT.logging_folder=",
        "--conf-set-option=routing:bootstrap_rw.bind_port=7001",
    ]
    assert host.read == ["", f"{password}\n"]


def test_only_root_says_which_user_the_router_runs_as(primary):
    """The router asks for it as root, and refuses it of anybody else."""
    host = Told({"* --help": KNOWS_ALL})
    host.root = True
    innodb_cluster.bootstrap(host, ROUTER, primary, {})

    assert host.commands[1][host.commands[1].index("--user") :][:2] == ["--user", "root"]


def test_an_older_router_is_told_what_it_knows(primary):
    """What it has not heard of is not said; listeners that it cannot leave out get ports of their own."""
    host = Told({"* --help": "--disable-rest"})
    innodb_cluster.bootstrap(host, ROUTER, primary, {})

    assert host.commands[1][-4:] == [
        "--disable-rest",
        "--conf-set-option=DEFAULT.logging_folder=",
        "--conf-set-option=routing:bootstrap_x_rw.bind_port=20001",
        "--conf-set-option=routing:bootstrap_x_ro.bind_port=20002",
    ]


def test_a_router_that_is_not_made_is_answered_in_its_own_words(primary, password):
    """Where it was asked for, and what it said."""
    refused = CommandFailed(["mysqlrouter"], 1, stderr=f"Error: Access denied for 'dbcluster' {password}", host="r")
    host = Told({"* --help": KNOWS_ALL, "*--bootstrap*": refused})

    with pytest.raises(ProvisionError) as caught:
        innodb_cluster.bootstrap(host, ROUTER, primary, {})
    refusal = "mysqlrouter on r ended with 1: Error: Access denied for 'dbcluster' ***"
    assert missing(caught.value, "could not bootstrap a router", "from node1", refusal) == []
    assert password not in str(caught.value)


def test_the_shell_of_the_release_comes_first(mysql, tmp_path, monkeypatch):
    """Then that of PATH; without either there is none."""
    release = dataclasses.replace(mysql, bin=tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = [innodb_cluster.shell(release)]
    for place in ("path", "bin"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "mysqlsh").write_text("#!/bin/sh\n")
        (tmp_path / place / "mysqlsh").chmod(0o755)
        found.append(innodb_cluster.shell(release))

    assert found == [None, tmp_path / "path/mysqlsh", tmp_path / "bin/mysqlsh"]

"""How machines are reached: which names are taken, and what the OpenSSH client is told."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.hosts.provisioners.ssh import access
from pytest_dbcluster.hosts.provisioners.ssh.access import BASE, Access, parse_machines, program
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.releases import apt
from tests.support.facts import missing


@pytest.fixture
def client():
    """The OpenSSH client of this machine."""
    try:
        return program()
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "target",
    [
        "db1",
        "10.0.0.1",
        "2001:db8::1",
        "fe80::1%eth0",
        "root@db1.example.org",
        "first.last@db1",
        "user@realm@db1",
        "DOMAIN\\user@db1",
        "_service-1@db_1",
    ],
)
def test_a_machine_is_a_name_or_a_user_at_an_address(target):
    """Everything that administrators call machines; a private address may follow."""
    assert parse_machines("--db-host", [target]) == {target: ""}
    assert parse_machines("--db-host", ["db0", f"{target}=10.0.0.2"]) == {"db0": "", target: "10.0.0.2"}


@pytest.mark.parametrize(
    "target",
    [
        "-oProxyCommand=touch /tmp/x",
        "-F/etc/passwd",
        "-",
        "--",
        "root@-oProxyCommand=x",
        "-l@db1",
        "",
        "@db1",
        "root@",
        "db1 true",
        "db1;true",
        "$(true)",
        "`true`",
        "db1\n",
        "db1\ntrue",
        "db*",
        "ssh://db1",
        "db1,db2",
        "dé1",
        "db1=",
        "=10.0.0.1",
    ],
)
def test_what_ssh_or_a_shell_would_take_for_something_else_is_refused(target):
    """It never reaches a command line."""
    with pytest.raises(ConfigError) as caught:
        parse_machines("--db-host", ["db1", target])
    assert f"--db-host {target!r}: it accepts USER@ADDRESS" in str(caught.value)
    for option, machines in (("--db-host", {"machines": [target]}),
                             ("--db-load-host", {"machines": ["db1"], "load_machines": [target]})):  # fmt: skip
        with pytest.raises(ConfigError, match=f"^{option} {re.escape(repr(target))}: "):
            SshProvisioner(**machines)


@pytest.mark.parametrize("private", ["db2", "10.0.0", "10.0.0.1;true", "-oX", "10.0.0.1/24", "a=b", "2001:db8::5"])
def test_a_private_address_is_an_address(private):
    """It goes into the files of servers, which ask nobody for names."""
    with pytest.raises(ConfigError) as caught:
        parse_machines("--db-host", [f"db1={private}"])
    assert missing(caught.value, f"--db-host {f'db1={private}'!r}: ", f"{private!r} is not an IPv4 address") == []


def test_a_machine_is_named_once():
    """A machine that is named twice would hold two nodes of one cluster."""
    with pytest.raises(ConfigError) as caught:
        parse_machines("--db-host", ["db1", "root@db2", "root@db2=10.0.0.2"])
    assert missing(caught.value, "--db-host root@db2: ", "named twice", "each machine once") == []


def test_the_user_is_never_asked_anything(client):
    """Neither for a password nor whether a key is right; nothing of this machine is lent to the other one."""
    words = Access().command("db1", "true")
    said = dict(word.split("=", 1) for word, before in zip(words[1:], words, strict=False) if before == "-o")

    assert (words[0], words[1], words[-2:]) == (client, "-T", ["db1", "true"])
    assert said["BatchMode"] == "yes"
    assert said["StrictHostKeyChecking"] == "yes"
    assert (said["ForwardAgent"], said["ForwardX11"], said["PermitLocalCommand"]) == ("no", "no", "no")
    assert float(said["ServerAliveInterval"]) * float(said["ServerAliveCountMax"]) > 8  # seconds that a link may be cut


def test_files_of_the_options_are_read_instead_of_the_users(client, tmp_path, monkeypatch):
    """By absolute paths: ssh runs in another directory."""
    for name in ("config", "keys"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    made = Access(config=tmp_path.relative_to(tmp_path) / "config", keys=tmp_path.relative_to(tmp_path) / "keys")

    words = made.command("db1")

    assert words[words.index("-F") + 1] == str(tmp_path / "config")
    assert f"UserKnownHostsFile={tmp_path}/keys" in words
    assert "GlobalKnownHostsFile=none" in words
    assert not [word for word in Access().command("db1") if "KnownHosts" in word or word == "-F"]


def test_ssh_knows_every_option(client, tmp_path):
    """What the command line asks for is what ssh would do, whatever the user's file says otherwise."""
    (tmp_path / "config").write_text(
        "Host db1\n HostName 192.0.2.1\n StrictHostKeyChecking no\n ForwardAgent yes\n RemoteCommand tmux\n"
        " ControlPersist yes\n ServerAliveInterval 0\n"
    )
    command = Access(config=tmp_path / "config").command("-G", "db1")

    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())

    assert (done.returncode, done.stderr) == (0, "")
    assert said["hostname"] == "192.0.2.1"
    assert said["stricthostkeychecking"] in ("true", "yes")
    assert said["forwardagent"] == "no"
    assert said.get("remotecommand", "none") == "none"
    assert said["controlpersist"] == "no"
    assert said["serveraliveinterval"] == "5"


@pytest.mark.parametrize(("name", "option"), [("config", "--db-ssh-config"), ("keys", "--db-host-keys")])
def test_a_file_that_is_missing_is_named_with_its_option(name, option, tmp_path):
    """Before anything is connected; a directory is no file either."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError) as caught:
            Access(**{name: path})
        assert missing(caught.value, f"{option} {path}: ", "no such file") == []


@pytest.mark.parametrize("base", ["relative", "~/data", "/data dir", "/data;true", "/$HOME", "/data\n", ""])
def test_a_directory_of_machines_is_a_plain_absolute_path(base):
    """Programs there find their files by it."""
    with pytest.raises(ConfigError) as caught:
        Access(base=base)
    path = ("an absolute path", "letters, digits and _./+-", f"such as {BASE}")
    assert missing(caught.value, f"--db-host-directory {base!r}: ", *path) == []
    assert Access(base="/mnt/data-1/x_y.z").base == "/mnt/data-1/x_y.z"


def test_a_machine_without_ssh_is_told_how_to_get_it(tmp_path, monkeypatch):
    """Nothing is tried without the program. The name of its package differs without apt."""
    access.program.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    said = []
    try:
        for programs in ((), apt.PROGRAMS):
            for program in programs:
                (tmp_path / program).touch(mode=0o755)
            with pytest.raises(Unsupported, match=r"^the provisioner ssh needs the OpenSSH client `ssh`") as caught:
                Access().command("db1")
            said.append(str(caught.value).rpartition("not installed: ")[2])
    finally:
        access.program.cache_clear()
    assert said == ["install the package openssh-clients", "apt-get install openssh-client"]


def test_no_key_is_shown_by_a_machine_that_is_not_there(client, tmp_path):
    """The fingerprint is for a message, which is written without it then."""
    (tmp_path / "config").write_text(f"Host db1\n ProxyCommand {os.devnull}\n")

    assert Access(config=tmp_path / "config").fingerprint("db1") == ""

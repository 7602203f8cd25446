"""User data of instances: what an instance does when it boots. test_user_data_boot.py boots one."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2 import user_data
from pytest_dbcluster.hosts.provisioners.ec2.user_data import EBS, HostKey
from pytest_dbcluster.releases import apt

KEY = HostKey("-----BEGIN OPENSSH PRIVATE KEY-----\nab+/=\n-----END OPENSSH PRIVATE KEY-----\n", "ssh-ed25519 AAAAhost")
USER = "ssh-ed25519 AAAAuser run of someone@here"


WITH_SSH = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="there is no program ssh-keygen here")


def document(ttl: float = 7200, volume: str = EBS, directory: str = user_data.DIRECTORY) -> dict[str, Any]:
    """What cloud-init reads."""
    first, _, rest = user_data.user_data(KEY, ttl, volume, "ssh-ed25519 AAAAuser", directory).partition("\n")
    assert first == "#cloud-config"
    read: dict[str, Any] = json.loads(rest)
    return read


def scripts(read: dict[str, Any]) -> list[str]:
    """Every shell script of a document."""
    prepare = next(file for file in read["write_files"] if file["path"].endswith("prepare"))
    return [*(command[-1] for command in read["bootcmd"]), prepare["content"]]


def test_the_limit_comes_first() -> None:
    """The timer is set by the first command of bootcmd, which needs nothing that cloud-init does later."""
    read = document(ttl=7200.9)
    limit = read["bootcmd"][0][-1]

    assert next(iter(read)) == "bootcmd"
    assert "7200" in limit
    assert "7200.9" not in limit
    assert "shutdown" not in limit
    assert not any(file["path"] in limit for file in read["write_files"])


def test_the_keys_are_ours() -> None:
    """The instance gets our host key, deletes all others, and lets in the key of the run alone."""
    read = document()

    assert read["ssh_keys"] == {"ed25519_private": KEY.private, "ed25519_public": KEY.public}
    assert read["ssh_deletekeys"] is True
    assert read["ssh_authorized_keys"] == ["ssh-ed25519 AAAAuser"]


@WITH_SSH
def test_user_data_fit() -> None:
    """User data with the longest names stay far below what EC2 takes."""
    text = user_data.user_data(HostKey.new(), 10**7, "x" * 255, HostKey.new().public, "/" + "d" * 255)

    assert len(text.encode()) < user_data.MOST_BYTES / 2


def test_too_long_user_data_are_refused() -> None:
    """User data that EC2 would refuse are refused before, with both numbers."""
    with pytest.raises(ConfigError, match=r"has \d{5} bytes; EC2 accepts 16384"):
        user_data.user_data(KEY, 60, "", "ssh-ed25519 AAAAuser", "/" + "d" * 9000)


@pytest.mark.parametrize("volume", [EBS, ""])
def test_scripts_are_shell(volume: str) -> None:
    """A shell can parse every script, and none has a place left that was to be filled in."""
    for script in scripts(document(volume=volume)):
        done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)

        assert (done.returncode, done.stderr) == (0, "")
        assert not any(place in script for place in ("@TTL@", "@VOLUME@", "@DIRECTORY@", "@DATA@", "@WRITTEN@"))


def test_what_was_written_is_told() -> None:
    """The part of the volume is in results, the time is not: equal hardware gives equal texts."""
    said = user_data.parse_written("ready\nwritten 8589934592 of 53687091200 in 66\n")

    assert said == user_data.Written(8 * 2**30, 50 * 2**30, 66)
    assert str(said) == "8.0 GiB of 50.0 GiB written once before use"
    assert user_data.parse_written("ready\n") is None


@pytest.mark.parametrize("ttl", [0, -1, 0.5, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(ttl: float) -> None:
    """An instance has a time to live of a second or more."""
    with pytest.raises(ConfigError, match="the time to live of an instance is a number of seconds, 1 or more"):
        document(ttl=ttl)


@pytest.mark.parametrize("volume", ["vol;reboot", "$(reboot)", "a b", "a\nb", "'"])
def test_a_volume_that_is_no_name_is_refused(volume: str) -> None:
    """A text that a shell would read otherwise than as a name is refused."""
    with pytest.raises(ConfigError, match="is not a name below /dev/disk/by-id"):
        document(volume=volume)


@pytest.mark.parametrize("directory", ["data", "/", "/etc", "/usr/", "/a b", "/a;b", "/a\n", ""])
def test_a_directory_that_cannot_be_is_refused(directory: str) -> None:
    """Data do not go to a relative path, to a directory, or where a shell would read something else."""
    with pytest.raises(ConfigError, match=r"--db-host-directory .* it accepts an absolute path"):
        document(directory=directory)


@pytest.mark.parametrize(
    "key", ["", "ssh-rsa AAAA", 'command="reboot" ssh-ed25519 AAAA', "ssh-ed25519 AAAA\nssh-ed25519 B"]
)
def test_other_keys_are_refused(key: str) -> None:
    """A text that is no single key of our type is refused: it could let others in."""
    with pytest.raises(ConfigError, match="the keys of an instance must have the type ed25519"):
        user_data.user_data(KEY, 60, "", key)
    with pytest.raises(ConfigError, match="the keys of an instance must have the type ed25519"):
        user_data.user_data(dataclasses.replace(KEY, public=key), 60, "", "ssh-ed25519 AAAA")


@WITH_SSH
def test_a_new_key_is_a_pair(tmp_path: Path) -> None:
    """The public key of a new pair is that of its private key, and a repr does not show the private one."""
    key = HostKey.new()
    file = tmp_path / "key"
    file.touch(mode=0o600)
    file.write_text(key.private)
    asked = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True, check=True)

    assert asked.stdout.strip() == key.public
    assert HostKey.new() != key
    assert "PRIVATE" not in repr(key)


def test_without_ssh_keygen_there_is_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without OpenSSH gets the name of the package, which differs without apt."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ProvisionError, match=r"not installed: install the package openssh-clients$"):
        HostKey.new()
    for program in apt.PROGRAMS:
        (tmp_path / program).touch(mode=0o755)
    with pytest.raises(ProvisionError, match=r"not installed: apt-get install openssh-client$"):
        HostKey.new()


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("ready\n", ""),
        ("failed no disk is the data volume x\n", "cannot prepare the instance: no disk is the data volume x"),
        ("\nstatus: running\ntime: x\n", "has not finished: status: running time: x"),
        ("", "cloud-init has not finished: ?"),
    ],
)
def test_what_an_instance_says_of_itself(printed: str, words: str) -> None:
    """An instance is prepared when it says so; else the message has its reason, or the state of cloud-init."""
    said = user_data.problem(printed)

    assert said.endswith(words)
    assert bool(said) == bool(words)

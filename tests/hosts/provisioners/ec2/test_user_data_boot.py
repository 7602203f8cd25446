"""User data as the real cloud-init and systemd execute them, in guests that boot with them."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts.provisioners.ec2 import user_data
from pytest_dbcluster.hosts.provisioners.ec2.hardware import needs
from pytest_dbcluster.hosts.provisioners.ec2.user_data import EBS, HostKey
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from tests.support import cloud_guest
from tests.support.cloud_guest import CloudGuest

pytestmark = [
    pytest.mark.guests,
    pytest.mark.skipif(bool(cloud_guest.missing()), reason=cloud_guest.missing() or "there can be guests"),
]

TTL = 45.0  # longer than the first half of a boot on a busy machine; an instance boots faster
LATE = 30.0  # seconds in which a guest has ended after its time: systemd unmounts, the kernel stops
LONG = 1800.0
STAGE = "usr/lib/python3/dist-packages/cloudinit/config/cc_write_files.py"  # the first module after bootcmd
HEAD = "meta = {'id': 'cc_write_files', 'distros': ['all'], 'frequency': 'once-per-instance'}\n"


@pytest.fixture(scope="module", params=cloud_guest.SUITES)
def booted(request: pytest.FixtureRequest) -> Iterator[CloudGuest]:
    """A guest that has booted and is prepared."""
    with CloudGuest(request.param, LONG) as guest:
        assert guest.wait_prepared() == ""
        yield guest


@pytest.mark.parametrize("suite", cloud_guest.SUITES)
@pytest.mark.parametrize("volume", [EBS, ""])
def test_cloud_init_knows_every_part(suite: str, volume: str, tmp_path: Path) -> None:
    """``cloud-init schema`` of each version finds no fault; it does find one in a value of a wrong type."""
    text = user_data.user_data(HostKey.new(), LONG, volume, HostKey.new().public)
    file = cloud_guest.root(suite) / "tmp" / tmp_path.name
    file.write_text(text)
    try:
        said = schema(suite, file)
        file.write_text(text.replace('"disable_root": false', '"disable_root": "perhaps"'))
        wrong = schema(suite, file)
    finally:
        file.unlink()

    assert said.returncode == 0, said.stderr
    assert "Valid" in said.stdout
    assert wrong.returncode


def schema(suite: str, file: Path) -> subprocess.CompletedProcess[str]:
    """What the cloud-init of a suite says of a file that lies in its /tmp."""
    command = ["chroot", str(cloud_guest.root(suite)), "cloud-init", "schema", "--config-file", f"/tmp/{file.name}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_host_key_is_ours(booted: CloudGuest) -> None:
    """The ssh server shows our key, and has no other: who is asked for another type of key gets nothing."""
    assert booted.ssh("ls /etc/ssh/*_key").stdout.split() == ["/etc/ssh/ssh_host_ed25519_key"]
    assert booted.ssh("cat /etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[:2] == booted.host_key.public.split()
    other = booted.ssh("true", "-o", "HostKeyAlgorithms=ecdsa-sha2-nistp256,rsa-sha2-512")

    assert "no matching host key type found" in other.stderr


def test_only_the_key_of_the_run_opens(booted: CloudGuest, tmp_path: Path) -> None:
    """The user of the run is root there. Another key, another user, and a password let nobody in."""
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text(HostKey.new().private)

    assert booted.ssh("id -un").stdout.strip() == "root"
    assert "Permission denied (publickey)" in booted.ssh("true", key=key).stderr
    assert booted.ssh("test -s /home/debian/.ssh/authorized_keys").returncode == 0  # cloud-init gives it the key too
    assert "Permission denied (publickey)" in booted.ssh("true", "-l", "debian").stderr


def test_nothing_works_beside_a_measurement(booted: CloudGuest) -> None:
    """Upgrades, apt's timers and trimming are masked, and none of them runs."""
    units = ("apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer", "unattended-upgrades.service")
    states = booted.ssh(f"systemctl is-enabled {' '.join(units)}; systemctl is-active {' '.join(units)}").stdout.split()

    assert states == ["masked"] * len(units) + ["inactive"] * len(units)


def test_the_data_have_their_volume(booted: CloudGuest) -> None:
    """The volume is found by what it says of itself, has a new file system, and is open to every user."""
    assert "/dev/vda /var/tmp ext4 rw,noatime" in booted.ssh("cat /proc/mounts").stdout
    assert booted.ssh("stat -c %a /var/tmp; touch /var/tmp/file && echo written").stdout.split() == ["1777", "written"]
    assert "lazy" not in booted.ssh("cat /proc/mounts").stdout


def test_all_of_a_small_volume_is_written(booted: CloudGuest) -> None:
    """The guest says how much, and its file system has the whole volume."""
    size = cloud_guest.DISK
    said = user_data.parse_written(booted.ssh(user_data.wait_command(1)).stdout)

    assert said is not None
    assert (said.bytes, said.size) == (size, size)
    assert blocks(booted) * 4096 == size


def test_a_part_of_a_volume_is_written_and_the_data_lie_there() -> None:
    """The file system has the size of that part, in which no table or journal is left to be written later.

    It grows while it is mounted, and keeps its data.
    """
    with CloudGuest(cloud_guest.SUITES[0], LONG, written=128) as guest:
        assert guest.wait_prepared() == ""
        said = user_data.parse_written(guest.ssh(user_data.wait_command(1)).stdout)
        before = blocks(guest)
        groups = [line for line in guest.ssh("dumpe2fs /dev/vda").stdout.splitlines() if line.startswith("Group ")]
        tables = [line for line in groups if line.split()[1].rstrip(":").isdecimal()]
        done = guest.ssh(f"echo kept >/var/tmp/file; set -- /var/tmp\n{user_data.GROW}\ncat /var/tmp/file")
        grown = blocks(guest)

    assert said is not None
    assert (said.bytes, said.size) == (128 * 2**20, cloud_guest.DISK)
    assert before * 4096 == 128 * 2**20
    assert tables
    assert [line for line in tables if "ITABLE_ZEROED" not in line] == []
    assert (done.returncode, done.stdout) == (0, "kept\n"), done.stderr
    assert grown * 4096 == cloud_guest.DISK


def blocks(guest: CloudGuest) -> int:
    """How many blocks of 4 KiB the file system of the data has."""
    text = guest.ssh("dumpe2fs -h /dev/vda 2>/dev/null").stdout
    found = {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
    return int(found["Block count"]) * int(found["Block size"]) // 4096


def test_what_stays_outlives_its_connection(booted: CloudGuest) -> None:
    """Neither systemd nor our watchdog ends the programs of a session that was told to stay; others end with it."""
    for stays in (True, False):
        name = f"0a1b2c3d-{int(stays)}-node1"
        command = remote_programs.session(base="/tmp", name=name, owner="x", mark=name, exclusive=False)
        words = ["hello", "begin 1 1", f"exec $leader sleep {1000 + stays}", *(["stay"] if stays else [])]
        with booted.talking(command) as talk:
            assert talk.stdin
            assert talk.stdout
            talk.stdin.write("".join(f"{word}\n" for word in words))
            talk.stdin.flush()
            wanted = "stays" if stays else "began"
            assert any(wanted in line for line in talk.stdout), "the agent has ended"
            talk.kill()
    time.sleep(remote_programs.BEAT_SECONDS * (remote_programs.MISSED + 2))
    running = booted.ssh("ps -e -o args").stdout.splitlines()

    assert "sleep 1001" in running
    assert "sleep 1000" not in running


def test_the_time_to_live_began_with_the_boot(booted: CloudGuest) -> None:
    """The timer runs to the time to live after the begin of the kernel, to the second."""
    lasts = booted.ssh("sed -n s/OnBootSec=//p /run/systemd/system/dbcluster-end.timer").stdout

    assert booted.ssh("systemctl is-active dbcluster-end.timer").stdout.strip() == "active"
    assert int(lasts) == pytest.approx(LONG, abs=1)


def test_writes_of_a_session_can_be_limited(booted: CloudGuest) -> None:
    """As for a cluster that needs fewer than the volume has: 200 writes take 2 s at 100 a second."""
    limit = f"sh -c {shlex.quote(needs.LIMIT)} sh 100 /var/tmp"
    write = "dd if=/dev/zero of=/var/tmp/file bs=4096 count=200 oflag=direct conv=notrunc"
    said = booted.ssh(f"{write}; date +%s.%N; {limit}; {write}; date +%s.%N").stdout.split()

    assert said[1] == "limited", said
    assert float(said[2]) - float(said[0]) >= 1.5


@pytest.mark.parametrize("suite", cloud_guest.SUITES)
@pytest.mark.parametrize(
    "stage",
    [
        "",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        "import time\ntime.sleep(1e6)\n",
        "raise Exception\n",
    ],
    ids=["as it is", "killed", "hangs", "fails"],
)
def test_the_timer_ends_the_guest(suite: str, stage: str) -> None:
    """At its time, whatever becomes of cloud-init after its first command: killed, hanging for ever, failing."""
    body = "def handle(*_):\n" + "".join(f"    {line}\n" for line in stage.splitlines())
    with CloudGuest(suite, TTL, more={STAGE: HEAD + body} if stage else {}) as guest:
        seconds = guest.wait_ended()

        assert TTL - 1 <= seconds <= TTL + LATE
        assert "Power down" in guest.console()


def test_a_boot_in_between_does_not_begin_the_time_anew() -> None:
    """An instance that boots again ends at the time that its first boot has written down."""
    more = {user_data.EXPIRES.lstrip("/"): str(int(time.time() + TTL))}
    with CloudGuest(cloud_guest.SUITES[0], LONG, more=more) as guest:
        seconds = guest.wait_ended()

        assert TTL - 2 <= seconds <= TTL + LATE


def test_without_a_timer_a_guest_ends_at_once() -> None:
    """An instance that cannot have a limit costs nothing more, and says why on its console."""
    more = {"etc/systemd/system/dbcluster-end.timer": "[Timer]\n"}  # takes the place of ours, and has no time
    with CloudGuest(cloud_guest.SUITES[0], LONG, more=more) as guest:
        guest.wait_ended()

        assert "no limit of the time to live could be set: this instance ends" in guest.console()


def test_a_volume_that_is_not_there_is_said() -> None:
    """The reason has the name that was looked for, and the names that there are."""
    with CloudGuest(cloud_guest.SUITES[0], LONG, volume=EBS) as guest:
        said = guest.wait_prepared()

        assert f"cannot prepare the instance: no disk is the data volume {EBS}: virtio-disk" in said


def test_without_a_data_volume_the_data_lie_on_the_root() -> None:
    """As on a load host: its directory is open to every user, and no disk is touched."""
    with CloudGuest(cloud_guest.SUITES[1], LONG, volume="") as guest:
        assert guest.wait_prepared() == ""

        assert guest.ssh("stat -c %a /var/tmp").stdout.strip() == "1777"
        assert "/dev/vda" not in guest.ssh("cat /proc/mounts").stdout
        assert guest.ssh("wipefs -n /dev/vda").stdout == ""


def test_an_end_over_ssh_needs_no_credentials() -> None:
    """The run can end an instance from the inside."""
    with CloudGuest(cloud_guest.SUITES[0], LONG) as guest:
        guest.wait_reached()
        guest.ssh("systemctl poweroff --force")
        wait.until(lambda: [] if guest.ended() else ["there"], "the end of a guest", seconds=60)

        assert "Power down" in guest.console()

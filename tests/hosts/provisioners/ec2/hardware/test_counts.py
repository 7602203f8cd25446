"""What an instance has used, from what its kernel counts."""

from __future__ import annotations

import subprocess
import time

import psutil
import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.hardware.counts import SCRIPT, Counts, Used

TEXT = """\
up 120.50
cpu 1000 200 300 90000 40 10 20 30 0 0
disk nvme0n1 10 0 800 5 20 4 1600 9 0 10 14 0 0 0 0 0 0 : Amazon Elastic Block Store
disk nvme1n1 5 0 0 5 5 4 102400 9 0 10 14 0 0 0 0 0 0 : Amazon Elastic Block Store              \n\
disk nvme2n1 7 0 8 5 7 4 8 9 0 10 14 0 0 0 0 0 0 : Amazon EC2 NVMe Instance Storage
disk loop0 900 0 8 5 7 4 8 9 0 10 14 0 0 0 0 0 0 : \n\
net lo lo 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0
net ens5 ens5 1000 1 0 0 0 0 0 0 3000 1 0 0 0 0 0 0
end
"""


def test_every_part_is_read() -> None:
    """CPU time without idling, disks with what they are, and the network without what stays inside."""
    counts = Counts.read(TEXT, "server1")

    assert counts.up == 120.5
    assert counts.cpu == pytest.approx((1000 + 200 + 300 + 10 + 20 + 30) / 100)
    assert counts.disks["nvme0n1"] == Used(30, 2400 * 512, volume=True)
    assert (counts.received, counts.sent) == (1000, 3000)


def test_only_volumes_are_lent() -> None:
    """The disk of the instance itself is not one of them, and what is no disk is not counted."""
    assert [disk.volume for disk in Counts.read(TEXT, "server1").disks.values()] == [True, True, False]
    assert len(Counts.read(TEXT, "server1").volumes) == 2


def test_a_large_operation_counts_as_several() -> None:
    """52 MB in 10 operations of the kernel are 200 of EBS, of 256 KiB each."""
    assert Counts.read(TEXT, "server1").disks["nvme1n1"].operations == 102400 * 512 / (256 * 1024)


@pytest.mark.parametrize(
    "text",
    ["", "end", TEXT.replace("end", ""), TEXT.replace("disk ", "disc "), TEXT.replace("1000 200", "a b"), "up x\nend"],
)
def test_half_an_answer_is_none(text: str) -> None:
    """What was cut off, or is no number, could hide that everything was used."""
    with pytest.raises(ProvisionError, match="the machine server1 does not say what it has used"):
        Counts.read(text, "server1")


def test_the_script_runs_on_a_machine() -> None:
    """On this one it says what other programs say too."""
    done = subprocess.run(["sh", "-c", SCRIPT], capture_output=True, text=True, check=True)
    counts = Counts.read(done.stdout, "here")

    assert done.stderr == ""
    assert counts.up == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)
    times = psutil.cpu_times()
    assert counts.cpu == pytest.approx(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice, rel=0.2)
    assert counts.volumes


def test_a_disk_that_does_not_say_what_it_is_is_a_volume() -> None:
    """As those of older types, which are no NVMe disks."""
    text = TEXT.replace("nvme0n1", "xvda").replace(": Amazon Elastic Block Store\ndisk nvme1n1", ": \ndisk nvme1n1")

    assert Counts.read(text, "server1").disks["xvda"].volume

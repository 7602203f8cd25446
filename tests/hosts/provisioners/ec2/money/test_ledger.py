"""One cap over all launches of a run, whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.money import ledger as module
from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost, CostPart, InstanceGroup
from pytest_dbcluster.hosts.provisioners.ec2.money.ledger import LaunchLedger
from tests.support.facts import missing

WORKER = """
import sys, time
from pathlib import Path
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost, InstanceGroup, CostPart
from pytest_dbcluster.hosts.provisioners.ec2.money.ledger import LaunchLedger
ledger = LaunchLedger(Path(sys.argv[1]), float(sys.argv[2]))
group, part = InstanceGroup("servers", "r6i.large", 1, False), CostPart("1 x r6i.large", 0.25)
cost = Cost((group,), (part,), 3600, "eu-central-1a")
for _ in range(int(sys.argv[3])):
    try:
        ledger.reserve(cost)
    except ConfigError:
        break
    print("reserved", flush=True)
"""


def cost(amount=0.25):
    """A launch that costs this much at most, in USD."""
    return Cost(
        (InstanceGroup("servers", "r6i.large", 1, False),), (CostPart("1 x r6i.large", amount),), 3600, "eu-central-1a"
    )


@pytest.fixture
def path(tmp_path) -> Path:
    """The file of a ledger."""
    return tmp_path / "ec2-ledger.json"


def worker(path, cap, tries):
    """A process that reserves 0.25 USD as often as it may, at most this often."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), str(cap), str(tries)], stdout=subprocess.PIPE, text=True
    )


def test_launches_are_permitted_up_to_the_cap(path):
    """The sum of all reservations may be the cap, and not more."""
    ledger = LaunchLedger(path, 1.0)
    for _ in range(4):
        ledger.reserve(cost())

    with pytest.raises(ConfigError, match=r"--db-max-cost allows 1\.00, and other launches of the run have used 1\.00"):
        ledger.reserve(cost(0.001))
    assert ledger.used == 1_000_000


def test_the_amount_that_a_refusal_proposes_is_enough(path, tmp_path):
    """A user who gives the proposed cap gets the launch."""
    dear = cost(0.123456)
    with pytest.raises(ConfigError) as error:
        LaunchLedger(path, 0.1).reserve(dear)
    proposed = float(str(error.value).rpartition(" ")[2])

    assert proposed == 0.13
    assert LaunchLedger(tmp_path / "another", proposed).reserve(dear)


def test_without_a_cap_nothing_is_permitted(path):
    """No --db-max-cost is no permission, however little a launch costs."""
    with pytest.raises(ConfigError, match="launches nothing without --db-max-cost"):
        LaunchLedger(path, None).reserve(cost(0.0001))

    assert not path.exists()


def test_what_was_not_spent_can_be_reserved_again(path):
    """After the end of a launch only what it cost counts, and a second settling changes nothing."""
    ledger = LaunchLedger(path, 0.3)
    first = ledger.reserve(cost())
    with pytest.raises(ConfigError):
        ledger.reserve(cost())
    ledger.settle(first, 40_000)
    ledger.settle(first, 999_999)

    assert ledger.used == 40_000
    assert ledger.reserve(cost())


def test_the_line_says_what_was_spent_and_what_may_still_be(path):
    """Launches that have ended are spent; others are named with their most."""
    ledger = LaunchLedger(path, 5.0)
    assert ledger.line == "about 0.00 USD spent"
    ledger.settle(ledger.reserve(cost()), 120_000)
    ledger.settle(ledger.reserve(cost()), 290_000)
    assert ledger.line == "about 0.41 USD spent"
    ledger.reserve(cost())

    assert missing(ledger.line, "about 0.41 USD spent", "at most 0.25 USD", "have not ended") == []


def test_workers_share_one_cap(path):
    """Two processes that reserve at the same time get together what the cap allows, and not one launch more."""
    workers = [worker(path, 2.5, 10) for _ in range(2)]
    outputs = [one.communicate(timeout=60)[0] for one in workers]

    assert [one.returncode for one in workers] == [0] * 2
    assert "".join(outputs).count("reserved") == 10
    assert LaunchLedger(path, 2.5).used == 2_500_000


def test_a_killed_worker_leaves_its_reservations(path):
    """Each reservation that was told to a process is in the file after SIGKILL, and the next process goes on."""
    killed = worker(path, 1e6, 1_000_000)
    told = 0
    while told < 20:
        assert killed.stdout.readline() == "reserved\n"
        told += 1
    os.kill(killed.pid, signal.SIGKILL)
    told += killed.stdout.read().count("reserved\n")
    killed.wait()
    killed.stdout.close()
    ledger = LaunchLedger(path, 1e6)
    left = ledger.used // 250_000

    assert told <= left <= told + 1
    ledger.reserve(cost())
    assert ledger.used == (left + 1) * 250_000


def test_a_file_that_was_left_half_written_is_not_read(path):
    """The file is replaced as a whole: what a killed process had begun beside it changes nothing."""
    ledger = LaunchLedger(path, 1.0)
    ledger.reserve(cost())
    path.with_name(f"{path.name}.new").write_text('{"launches": {"x"')

    assert ledger.used == 250_000
    ledger.reserve(cost())
    assert ledger.used == 500_000


def test_a_damaged_ledger_permits_nothing(path):
    """What is spent is unknown then: the error says so."""
    path.write_text("{")

    with pytest.raises(ProvisionError, match=r"is damaged .* without it we launch nothing"):
        LaunchLedger(path, 1.0).reserve(cost())


def test_a_ledger_that_cannot_be_written_permits_nothing(path, monkeypatch):
    """On a full disk no launch is permitted, and the earlier reservations stay."""
    ledger = LaunchLedger(path, 1.0)
    ledger.reserve(cost())

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", full)
        with pytest.raises(ProvisionError, match=r"No space left on device; without it we launch nothing"):
            ledger.reserve(cost())

    assert ledger.used == 250_000


def test_a_lock_that_another_process_holds_for_long_is_an_error(path, monkeypatch):
    """A stopped worker does not stop the others for ever."""
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    ready = "import filelock,sys; l=filelock.FileLock(sys.argv[1]); l.acquire(); print('held',flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", ready, f"{path}.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    try:
        with pytest.raises(ProvisionError, match="was in use by another process"):
            LaunchLedger(path, 1.0).reserve(cost())
    finally:
        holder.communicate("\n", timeout=30)
    assert LaunchLedger(path, 1.0).reserve(cost())


def test_the_lock_is_given_back_after_a_refusal(path):
    """A refused launch holds nothing."""
    with pytest.raises(ConfigError):
        LaunchLedger(path, 0.1).reserve(cost())
    with filelock.FileLock(f"{path}.lock", timeout=0):
        pass

"""What is lent, and how much of it is left by our count."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.hosts.provisioners.ec2.hardware import loans
from pytest_dbcluster.hosts.provisioners.ec2.hardware.counts import Counts, Used
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType, Speed
from pytest_dbcluster.hosts.provisioners.ec2.hardware.loans import CPU_BASELINES, Balance, Loan, loans_of
from tests.support.instance_types import all_types, described

NOTHING = Counts(0.0, 0.0, {}, 0.0, 0.0)
LOAN = Loan("the speed", "operations/s", 100, 6000, 6000, lambda counts: counts.volumes[0].operations)


def at(up: float, operations: float) -> Counts:
    """The counts of a machine with one volume."""
    return Counts(up, 0.0, {"nvme0n1": Used(operations, 0.0, volume=True)}, 0.0, 0.0)


def lent(name: str, *, mode: str = "", volume: str = "gp3", gib: int = 50) -> dict[str, Loan]:
    """What a type is lent, by the clause that names it."""
    kind = InstanceType.of(described(name))
    return {f"{loan.what}, {loan.unit}": loan for loan in loans_of(kind, mode=mode, volume=volume, gib=gib)}


def test_a_bucket_lasts_as_long_as_it_is_full() -> None:
    """6000 above 100 a second: 300 a second last for 30 s, and are over in the next one."""
    balance = Balance(LOAN)
    balance.take(at(29, 29 * 300))
    assert (balance.left, balance.over) == (200, "")
    balance.take(at(30, 30 * 300))

    assert balance.over == "the speed is used up, by our count: what it has for long is 100 operations/s"


def test_less_use_fills_it_again_and_never_beyond_full() -> None:
    """An hour without use gives back what it can hold."""
    balance = Balance(LOAN)
    balance.take(at(10, 3000))
    assert balance.left == 4000
    balance.take(at(3600, 3000))

    assert balance.left == 6000


def test_who_is_held_to_the_sustained_speed_has_not_got_it_back() -> None:
    """What seems to be left then is rounding; a tenth of all has to come back before rounds count again."""
    balance = Balance(LOAN)
    balance.take(at(30, 9000))
    for second in range(31, 60):
        balance.take(at(second, 9000 + (second - 30) * 99))
        assert balance.over
    balance.take(at(66, 9000 + 29 * 99))

    assert balance.over == ""


def test_the_boot_counts() -> None:
    """The first look books all that was done since the kernel began."""
    balance = Balance(LOAN)
    balance.take(at(10, 8000))

    assert balance.over


def test_a_small_gp2_volume_lends_operations() -> None:
    """100 GiB sustain 300 operations/s, and 5.4 million more are lent: half an hour at 3000."""
    loan = lent("r6i.large", volume="gp2", gib=100)["the speed that its gp2 volume of 100 GiB is lent, operations/s"]

    assert (loan.lasting, loan.full, loan.begin) == (300, 5.4e6, 5.4e6)
    assert (
        lent("r6i.large", volume="gp2", gib=10)["the speed that its gp2 volume of 10 GiB is lent, operations/s"].lasting
        == 100
    )
    assert 1990 < 5.4e6 / (3000 - 300) < 2010


@pytest.mark.parametrize(("volume", "gib"), [("gp2", 1000), ("gp3", 50), ("io2", 50), ("nvme", 0)])
def test_other_volumes_lend_nothing(volume: str, gib: int) -> None:
    """A large gp2 volume has 3000 operations/s for ever, and the others what was paid for."""
    assert not [what for what in lent("r6i.large", volume=volume, gib=gib) if "gp2" in what]


def test_an_instance_lends_speed_to_its_volumes() -> None:
    """r6i.large: 3600 operations/s and 81 MB/s for ever, and half an hour of what is above."""
    found = lent("r6i.large")
    operations = found["the speed to its volumes that r6i.large is lent, operations/s"]
    megabytes = found["the speed to its volumes that r6i.large is lent, MB/s"]

    assert (operations.lasting, operations.full) == (3600, 36400 * 1800)
    assert (megabytes.lasting, megabytes.full) == (81.25, 1168.75 * 1800)
    assert (
        megabytes.used(
            dataclasses.replace(NOTHING, disks={"a": Used(1, 5e6, volume=True), "b": Used(1, 5e6, volume=False)})
        )
        == 5
    )


def test_an_instance_lends_speed_of_the_network() -> None:
    """In each direction: 5 minutes, which is the least that AWS promises."""
    found = lent("r6i.large")
    sent = found["the speed of the network that r6i.large is lent (sent), MB/s"]

    assert (sent.lasting, sent.full) == (pytest.approx(97.625), pytest.approx(11.719 * 125 * 300))
    assert sent.used(dataclasses.replace(NOTHING, sent=2e6)) == 2
    assert (
        found["the speed of the network that r6i.large is lent (received), MB/s"].used(
            dataclasses.replace(NOTHING, received=3e6)
        )
        == 3
    )


def test_what_is_not_lent_has_no_loan() -> None:
    """A type whose baseline is its maximum, and one of which AWS says nothing."""
    kind = dataclasses.replace(
        InstanceType.of(described("r6i.large")), ebs_operations=Speed(9, 9), ebs_megabytes=Speed(), network=Speed(5, 5)
    )

    assert loans_of(kind, mode="", volume="gp3", gib=50) == []


def test_credits_of_cpus_are_lent_in_standard_mode_alone() -> None:
    """t3.medium earns 24 credits an hour, begins with none, and keeps those of a day; unlimited costs money instead."""
    (loan,) = [loan for what, loan in lent("t3.medium", mode="standard").items() if "CPUs" in what]

    assert loan.lasting * 60 == 24
    assert (loan.begin, loan.full / 60) == (0.0, pytest.approx(576))
    assert not [what for what in lent("t3.medium", mode="unlimited") if "CPUs" in what]
    assert not [what for what in lent("r6i.large", mode="") if "CPUs" in what]


def test_a_burstable_type_that_is_not_known_is_believed_nothing() -> None:
    """Of a newer one than the table knows, each second counts as lent."""
    kind = dataclasses.replace(InstanceType.of(described("t3.medium")), name="t9.medium")
    (loan,) = [loan for loan in loans_of(kind, mode="standard", volume="gp3", gib=50) if "CPUs" in loan.what]
    balance = Balance(loan)
    balance.take(dataclasses.replace(NOTHING, up=100, cpu=1))

    assert "what it has for long is 0 CPUs" in balance.over


def test_the_table_of_cpus_has_every_burstable_type() -> None:
    """All that AWS had when moto recorded its answers, and nothing else."""
    burstable = {name for name, facts in all_types().items() if facts.get("BurstablePerformanceSupported")}

    assert burstable - CPU_BASELINES.keys() - {"t1.micro"} == set()
    assert CPU_BASELINES.keys() <= burstable | {"t1.micro"}
    assert loans.CPU_BASELINES["t3.medium"] == 0.4

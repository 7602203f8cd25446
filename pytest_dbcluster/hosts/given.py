"""Options for clusters on the user's machines and on EC2 instances, for pytest and for ``dbcluster``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_dbcluster.errors import ConfigError

LOCK_WAIT = "30min"  # default of how long a process waits for another one's lock
TTL_MARGIN = 300.0  # a run ends this many seconds before its instances; a fifth of a short time to live


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of the provisioner ec2."""

    name: str
    field: str
    """The argument of ``EC2Settings.parse``."""

    help: str
    metavar: str = ""
    action: str = "store"

    @property
    def destination(self) -> str:
        """The name of the option's value in the parsed options."""
        return self.name.removeprefix("--").replace("-", "_")


EC2_OPTIONS = (
    Option("--db-max-cost", "max_cost", "the most that all instances of the run may cost; without it nothing is "
           "launched", "USD"),
    Option("--db-ec2-type", "type", "type of the servers' instances (default r6i.large)", "TYPE"),
    Option("--db-ec2-load-type", "load_type", "type of the load generator's instance (default: that of the servers)",
           "TYPE"),
    Option("--db-ec2-zone", "zones", "availability zone; repeatable: the servers are divided between zones, and the "
           "load generator is in the first (default: the first zone that has the types)", "ZONE", "append"),
    Option("--db-ec2-subnet", "subnets", "subnet of the instances; repeatable, one for each zone (default: the default "
           "subnet of the zone)", "SUBNET", "append"),
    Option("--db-ec2-jump", "jump", "host through which ssh reaches instances of a private subnet", "USER@ADDRESS"),
    Option("--db-ec2-image", "image", "image: ami-..., or the name of a public parameter (default: the newest Debian "
           "12)", "IMAGE"),
    Option("--db-ec2-volume", "volume", "data volume of each server: gp3:GIB[:IOPS[:MIB_PER_SECOND]], gp2:GIB, "
           "io1:GIB:IOPS, io2:GIB:IOPS, or nvme for the instance's own disk (default gp3:50:3000:125)", "VOLUME"),
    Option("--db-ec2-written", "written", "how much of each data volume is written once before use; 0 writes "
           "nothing (default 8)", "GIB"),
    Option("--db-ec2-ttl", "ttl", "time to live: instances end themselves after it (default 2h)", "TIME"),
    Option("--db-ec2-spot", "spot", "spot instances, which cost less and can be interrupted by AWS", "", "store_true"),
    Option("--db-ec2-price", "prices", "hourly price of a type, or another price by its name, such as ipv4=0.005, in "
           "place of a known price; repeatable", "TYPE=USD", "append"),
    Option("--db-ec2-tag", "tags", "a further tag for everything that is launched; repeatable", "KEY=VALUE", "append"),
    Option("--db-ec2-from", "source", "network that may reach ssh (default: our public address)",
           "CIDR"),
)  # fmt: skip


def add_ec2_options(add: Callable[..., object], before: str = "") -> None:
    """Add the options of the provisioner ec2. add: argparse's or pytest's. before: begins each help text."""
    for option in EC2_OPTIONS:
        metavar = {"metavar": option.metavar} if option.metavar else {}
        add(option.name, action=option.action, help=f"{before}{option.help}", **metavar)


def add_machines(option: Callable[..., object]) -> None:
    """Add the options of ``dbcluster`` that name machines and configure ssh. option: argparse's."""
    machines = "with --provisioner ssh: "
    option(
        "--db-host",
        action="append",
        default=[],
        metavar="USER@ADDRESS",
        help=f"{machines}a machine for one node of each cluster; repeatable; a Host of ~/.ssh/config too",
    )
    option(
        "--db-load-host",
        action="append",
        default=[],
        metavar="USER@ADDRESS",
        help=f"{machines}a machine for the load generator and proxies; repeatable",
    )
    option("--db-host-keys", metavar="FILE", help=f"{machines}file with the host keys of the machines")
    option("--db-ssh-config", metavar="FILE", help=f"{machines}configuration of ssh instead of ~/.ssh/config")
    option(
        "--db-host-directory",
        metavar="DIR",
        help=f"{machines}parent of our directory on the machines (default /var/tmp)",
    )


def remote_arguments(option: Any, provisioner: str) -> Mapping[str, Any]:
    """The arguments of the provisioners ssh and ec2 from parsed options. Raises ConfigError for other provisioners."""
    base = {"base": option.db_host_directory} if option.db_host_directory else {}
    machines, instances = ssh_arguments(option, provisioner), ec2_arguments(option, provisioner)
    if base and provisioner not in ("ssh", "ec2"):
        raise ConfigError(
            f"--db-host-directory was given, but the provisioner {provisioner} uses no machines; use --db-provisioner "
            "ssh or ec2"
        )
    return {**machines, **instances, **base}


def ssh_arguments(option: Any, provisioner: str) -> Mapping[str, Any]:
    """The arguments of the provisioner ssh from parsed options. Raises ConfigError for other provisioners."""
    given = {
        "machines": tuple(option.db_host or ()),
        "load_machines": tuple(option.db_load_host or ()),
        "keys": option.db_host_keys and Path(option.db_host_keys),
        "config": option.db_ssh_config and Path(option.db_ssh_config),
    }
    told = {name: value for name, value in given.items() if value}
    if told and provisioner != "ssh":
        raise ConfigError(
            f"machines were given, but the provisioner {provisioner} does not use them; use --db-provisioner ssh"
        )
    return told


def ec2_arguments(option: Any, provisioner: str) -> Mapping[str, Any]:
    """The arguments of the provisioner ec2 from parsed options. Raises ConfigError for other provisioners."""
    given: dict[str, Any] = {one.name: getattr(option, one.destination, None) for one in EC2_OPTIONS}
    told = [name for name, value in given.items() if value not in (None, False, [])]
    if provisioner != "ec2":
        if told:
            raise ConfigError(
                f"{told[0]} was given, but the provisioner {provisioner} launches no instances; use --db-provisioner "
                "ec2"
            )
        return {}
    from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings  # only this provisioner needs it

    values = {one.field: given[one.name] for one in EC2_OPTIONS}
    return {"settings": EC2Settings.parse(**{**values, "spot": bool(values["spot"])})}


def run_budget(given: float | None, elsewhere: Mapping[str, Any]) -> float | None:
    """Seconds that a run may take; None for no limit. A run must end before the time to live of its instances.

    given: of ``--db-run-budget``. elsewhere: of ``remote_arguments``. Raises ConfigError if the budget is too long.
    """
    if "settings" not in elsewhere:
        return given
    ttl: float = elsewhere["settings"].ttl
    most = ttl - min(TTL_MARGIN, ttl / 5)
    if given is not None and given > most:
        raise ConfigError(
            f"--db-run-budget {given:g}: instances end after --db-ec2-ttl, {ttl:g} s, so the run has {most:g} s; use "
            "a longer --db-ec2-ttl or a shorter --db-run-budget"
        )
    return most if given is None else given

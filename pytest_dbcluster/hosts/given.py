"""Options for clusters on the user's machines and on EC2 instances, for pytest and for ``dbcluster``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import DEFAULT_RELEASE, PARITIES

LOCK_WAIT = "30min"  # default of how long a process waits for another one's lock
TTL_MARGIN = 300.0  # a run ends this many seconds before its instances; a fifth of a short time to live
LOCAL_PLACES = "local (processes of this machine), container or vm (guests)"
PLACES = (
    "local (processes of this machine), container, vm (guests), ssh (the machines of --db-host) or ec2 (new instances)"
)
SSH_TITLE, EC2_TITLE = "machines, with the provisioner ssh", "instances, with the provisioner ec2"
Add = Callable[..., object]  # argparse's ``add_argument``, or pytest's ``addoption``


class HelpText(str):
    """The help of an option or of a command; ``dbcluster COMMAND --help`` prints its shorter form, ``brief``."""

    brief: str
    """The shorter form."""

    def __new__(cls, whole: str, brief: str) -> HelpText:
        """A text that is ``whole``, with its shorter form."""
        made = super().__new__(cls, whole)
        made.brief = brief
        return made


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of pytest and of commands, with the same help in all of them."""

    name: str
    """The name on the command line, such as ``--db-host``."""

    field: str
    """The argument of the provisioner, or of ``EC2Settings.parse``."""

    help: str
    """The whole help text, for pytest and the documentation."""

    brief: str
    """Its help in the terminal help of a command."""

    metavar: str = ""
    """The placeholder of the value in the help; empty for none."""

    action: str = "store"
    """The action of argparse."""

    @property
    def destination(self) -> str:
        """The name of the option's value in the parsed options."""
        return self.name.removeprefix("--").replace("-", "_")

    def add_to(self, add: Add) -> None:
        """Add the option to a parser."""
        metavar = {"metavar": self.metavar} if self.metavar else {}
        add(self.name, action=self.action, help=HelpText(self.help, self.brief), **metavar)


SSH_OPTIONS = (
    Option("--db-host", "machines", "machine for one node of each cluster, or a Host of ~/.ssh/config; repeatable; "
           "USER@ADDRESS=PRIVATE_ADDRESS if the machines reach each other at other addresses",
           "machine for one node; repeatable", "USER@ADDRESS", "append"),
    Option("--db-load-host", "load_machines", "machine for the load generator and proxies (default: the last "
           "--db-host, beside a server); repeatable: sysbench and TPC-C divide their clients between all of them, "
           "mysqlslap runs on the first", "machine for the load generator; repeatable", "USER@ADDRESS", "append"),
    Option("--db-host-keys", "keys", "file with the host keys of the machines, in the format of known_hosts (default: "
           "those that ssh knows)", "host keys, in the format of known_hosts", "FILE"),
    Option("--db-ssh-config", "config", "ssh configuration in place of ~/.ssh/config",
           "configuration in place of ~/.ssh/config", "FILE"),
    Option("--db-host-directory", "base", "parent of our directory on the machines or instances (default /var/tmp)",
           "parent of our directory (default /var/tmp)", "DIR"),
)  # fmt: skip
EC2_OPTIONS = (
    Option("--db-max-cost", "max_cost", "the most that all instances of the run may cost, without taxes and traffic; "
           "without it nothing is launched", "the most that instances may cost; required", "USD"),
    Option("--db-ec2-type", "type", "type of the servers' instances (default r6i.large)",
           "type of the servers (default r6i.large)", "TYPE"),
    Option("--db-ec2-load-type", "load_type", "type of the load generator's instance (default: that of the servers)",
           "load generator's type (default: the servers')", "TYPE"),
    Option("--db-ec2-zone", "zones", "availability zone; repeatable: the servers are divided between zones, and the "
           "load generator is in the first (default: the first zone that has the types)",
           "availability zone; repeatable", "ZONE", "append"),
    Option("--db-ec2-subnet", "subnets", "subnet of the instances; repeatable, one for each zone (default: the default "
           "subnet of the zone)", "subnet, one for each zone; repeatable", "SUBNET", "append"),
    Option("--db-ec2-jump", "jump", "host through which ssh reaches instances of a private subnet",
           "host through which ssh reaches them", "USER@ADDRESS"),
    Option("--db-ec2-image", "image", "image: ami-..., or the name of a public parameter (default: the newest Debian "
           "12)", "ami-... (default: the newest Debian 12)", "IMAGE"),
    Option("--db-ec2-volume", "volume", "data volume of each server: gp3:GIB[:IOPS[:MIB_PER_SECOND]], gp2:GIB, "
           "io1:GIB:IOPS, io2:GIB:IOPS, or nvme for the instance's own disk (default gp3:50:3000:125)",
           "data volume (default gp3:50:3000:125)", "VOLUME"),
    Option("--db-ec2-written", "written", "how much of each data volume is written once before use; 0 writes "
           "nothing (default 8)", "data written once before use (default 8)", "GIB"),
    Option("--db-ec2-ttl", "ttl", "time to live, such as 90min: instances end themselves after it (default 2h)",
           "instances end after it (default 2h)", "TIME"),
    Option("--db-ec2-spot", "spot", "spot instances, which cost less and can be interrupted by AWS",
           "cheaper instances that AWS can interrupt", "", "store_true"),
    Option("--db-ec2-price", "prices", "price that wins over known prices; repeatable: TYPE=USD for an hour of a type, "
           "or another item, such as ipv4=USD; `dbcluster ec2 prices --list` lists them",
           "price that wins over known ones; repeatable", "NAME=USD", "append"),
    Option("--db-ec2-tag", "tags", "a further tag for everything that is launched; repeatable",
           "a further tag; repeatable", "KEY=VALUE", "append"),
    Option("--db-ec2-from", "source", "network that may reach ssh (default: our public address)",
           "may reach ssh (default: our public address)", "CIDR"),
)  # fmt: skip
# Name without prefix (``release`` of --release and --db-release) -> metavar, help of pytest and of the documentation,
# and help of commands.
COMMON: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "release": (
            "NAME:VERSION[=DIR]",
            f"server release (default {DEFAULT_RELEASE}); `dbcluster releases` lists them; =DIR is an unpacked server",
            f"server release (default {DEFAULT_RELEASE})",
        ),
        "image": (
            "NAME:VERSION=IMAGE",
            "image for the containers of a release (default: the image of `dbcluster image build`); repeatable",
            "image for a release's containers; repeatable",
        ),
        "parity": (
            "|".join(PARITIES),
            "vendor: the defaults of each vendor (default); normalised: the same durability, binlog, appliers, "
            "isolation and character set on all servers",
            "defaults of each vendor, or the same durability, binlog, appliers, isolation and character set",
        ),
        "cnf-root": (
            "DIR",
            "copy of the files of the host that a my.cnf came from, for lines such as !include /etc/...",
            "the host's files, for lines of !include",
        ),
        "wait": (
            "TIME",
            "how long to wait for another run on this machine, or for a lock of the cache, such as 90s or 2h; then end "
            f"with an error that names the process that has the lock (default {LOCK_WAIT})",
            f"longest wait for another run (default {LOCK_WAIT})",
        ),
    }
)


def add_common(add: Add, option: str, more: str = "", brief: str = "", **arguments: object) -> None:
    """Add an option of ``COMMON``: ``--db-release`` or ``--release``.

    more: the end of the help. brief: another help of the command. arguments: further arguments of ``add``.
    """
    metavar, text, usual = COMMON[option.removeprefix("--").removeprefix("db-")]
    add(option, metavar=metavar, help=HelpText(f"{text}{more}", brief or usual), **arguments)


def add_ssh_options(add: Add) -> None:
    """Add the options that name machines and configure ssh."""
    for option in SSH_OPTIONS:
        option.add_to(add)


def add_ec2_options(add: Add) -> None:
    """Add the options of the provisioner ec2."""
    for option in EC2_OPTIONS:
        option.add_to(add)


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

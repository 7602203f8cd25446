"""The releases and tools that can be fetched: versions, suites and packages. Data only."""

from __future__ import annotations

import dataclasses

DEBIAN = ("bullseye", "bookworm", "trixie", "sid")
UBUNTU = ("jammy", "noble")
WITHOUT_SECURITY = ("sid",)  # security fixes arrive as new versions
ALIASES = ("stable", "oldstable", "oldoldstable", "testing", "unstable")

_GALERA = ("galera-4", "mariadb-backup", "socat", "pv", "iproute2", "procps")
_MARIADB = ("mariadb-server", "mariadb-client", *_GALERA)

# Each program of the vendor is 5 MB large, because it includes the client library. We keep only those that a cluster
# uses.
MARIADB_PROGRAMS = (
    "mariadb", "mysql", "mariadbd", "mysqld", "mbstream", "mariabackup", "my_print_defaults", "resolveip",
    *(f"mariadb-{name}" for name in ("admin", "backup", "binlog", "check", "dump", "install-db", "slap", "upgrade")),
    *(f"mysql{name}" for name in ("admin", "binlog", "check", "dump", "_install_db", "slap", "_upgrade")),
    "wsrep_sst_*", "galera_recovery", "socat", "pv", "ss", "ip", "ps",
)  # fmt: skip

MYSQL_PROGRAMS = (
    "mysqld", "mysql", "mysqladmin", "mysqlbinlog", "mysqldump", "mysqlslap", "mysqlrouter*", "my_print_defaults",
)  # fmt: skip

# Programs that we use from a user's directory or from PATH. MySQL Shell may be among them.
PROGRAMS = {"mariadb": MARIADB_PROGRAMS, "mysql": (*MYSQL_PROGRAMS, "mysqlsh")}

# Dependencies that a server in the foreground does not use, or that every Debian and Ubuntu has: mostly perl, and
# programs that install packages. We report them to apt as installed.
NOT_FETCHED = (
    "adduser", "base-files", "base-passwd", "dash", "debconf", "debianutils", "dpkg", "gawk", "init-system-helpers",
    "libcap2-bin", "libconfig-inifiles-perl", "libdbi-perl", "login.defs", "lsb-base", "lsof", "passwd", "perl",
    "perl-base", "psmisc", "rsync", "sysvinit-utils", "tar", "tzdata", "ucf", "usrmerge",
)  # fmt: skip


# The oldest version of each vendor that can be measured: statements and statuses of older servers have other names.
OLDEST = {"mariadb": (10, 5), "mysql": (8, 0, 29)}


@dataclasses.dataclass(frozen=True)
class Origin:
    """A suite that has a version."""

    suite: str
    """The suite, such as bookworm."""

    packages: tuple[str, ...]
    """The names of the packages to install; the first one has the version."""

    exact: str = ""
    """The version that the first package must have, if the offer has no version; empty for any version."""


@dataclasses.dataclass(frozen=True)
class Offer:
    """A version, or a tool, that can be fetched."""

    product: str
    """The product, such as mariadb or sysbench."""

    version: str
    """The version as users name it; empty for a tool."""

    origins: tuple[Origin, ...]
    """The suites that have it, with their packages."""

    programs: tuple[str, ...]
    """Patterns of the programs that go into ``bin/``."""

    in_order: bool = False
    """The first origin comes first, even if this machine has the suite of another one."""

    @property
    def name(self) -> str:
        """The name as users write it: ``mariadb:10.11``, ``sysbench``."""
        return f"{self.product}:{self.version}" if self.version else self.product


def _tool(name: str, packages: tuple[str, ...] = ()) -> Offer:
    # The suite of this machine comes first in any case. After it comes the newest stable suite.
    suites = ("trixie", "bookworm", "bullseye", "noble", "jammy")
    return Offer(name, "", tuple(Origin(suite, packages or (name,)) for suite in suites), (name,))


# The kernel of guests and the packages that form a guest's root; busybox has the programs that are missing here. Two
# machines with different kernels would measure different things, so each suite must have exactly this kernel. Later
# kernels are faster.
GUEST_SYSTEM = "vm"
_GUEST_PACKAGES = ("user-mode-linux", "busybox-static", "bash", "drbd-utils", "e2fsprogs", "iproute2", "iputils-ping")
# Of the kernel's 3000 modules, a guest uses these: overlay for its root, netem and its kin for delays, DRBD.
GUEST_MODULES = (
    "overlay", "virtio_blk", "veth", "drbd", "lru_cache", "libcrc32c", "sch_netem", "sch_prio", "sch_tbf", "sch_htb",
    "sch_ingress", "cls_u32", "cls_matchall", "act_mirred", "ifb",
)  # fmt: skip
_GUEST = Offer(
    GUEST_SYSTEM,
    "",
    (Origin("sid", _GUEST_PACKAGES, "7.2um1"), Origin("trixie", _GUEST_PACKAGES, "6.12um1")),
    ("ip", "tc"),
    in_order=True,
)

# The root of stand-in hosts, which are namespaces of this machine with a real ssh server. An ordinary Debian host has
# these packages; busybox has the programs that are missing here.
STAND_IN_SYSTEM = "stand-in"
_STAND_IN_PACKAGES = (
    "openssh-server", "openssh-client", "busybox-static", "bash", "coreutils", "findutils", "grep", "sed", "gzip",
    "zstd", "iproute2", "iputils-ping", "procps", "util-linux", "python3-minimal",
)  # fmt: skip
_STAND_IN = dataclasses.replace(
    _tool(STAND_IN_SYSTEM, _STAND_IN_PACKAGES), programs=("ssh-keygen", "ssh-keyscan", "ssh")
)

OFFERS = (
    Offer(
        "mariadb",
        "10.5",
        (Origin("bullseye", ("mariadb-server-10.5", "mariadb-client-10.5", *_GALERA)),),
        MARIADB_PROGRAMS,
    ),
    Offer(
        "mariadb",
        "10.6",
        (Origin("jammy", ("mariadb-server-10.6", "mariadb-client-10.6", *_GALERA)),),
        MARIADB_PROGRAMS,
    ),
    Offer("mariadb", "10.11", (Origin("bookworm", _MARIADB), Origin("noble", _MARIADB)), MARIADB_PROGRAMS),
    Offer("mariadb", "11.8", (Origin("trixie", _MARIADB),), MARIADB_PROGRAMS),
    Offer("mysql", "9.7", (Origin("sid", ("mysql-server", "mysql-client", "mysql-router")),), MYSQL_PROGRAMS),
    _tool("haproxy"),
    _tool("sysbench"),
    _GUEST,
    _STAND_IN,
)


def offer(product: str, version: str) -> Offer | None:
    """The offer of this version; None if the version is unknown."""
    return next((known for known in OFFERS if (known.product, known.version) == (product, version)), None)


def too_old(product: str, version: str, series: tuple[int, ...]) -> str:
    """Why this version is too old to be measured; empty if it is not, or if we do not know.

    series: the version as numbers, such as ``(5, 7)``. ``8.0`` passes, because it does not name a patch release;
    8.0.28 is too old.
    """
    if not series or series >= OLDEST[product][: len(series)]:
        return ""
    oldest = " and ".join(f"{name} {'.'.join(map(str, numbers))}" for name, numbers in OLDEST.items())
    return f"{product} {version} is too old to be measured: the oldest versions are {oldest}"

"""The releases and tools that can be fetched: versions, sources and packages. Data only."""

from __future__ import annotations

import dataclasses
import re

from pytest_dbcluster.releases.vendors.repository import ARCHIVES, REPOSITORIES, Repository
from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS

DEBIAN = ("bullseye", "bookworm", "trixie", "sid")
UBUNTU = ("jammy", "noble")
WITHOUT_SECURITY = ("sid",)  # security fixes arrive as new versions
SNAPSHOTS = "Debian's snapshot archive"
# The suite sid moves. At this time it had MySQL 9.7.4 and the kernel 7.2um1; snapshots are taken every few hours.
_SID = "20261030T140000Z"
ALIASES = ("stable", "oldstable", "oldoldstable", "testing", "unstable")

_TRANSFER = ("socat", "pv", "iproute2", "procps")  # programs of state transfers
_GALERA = ("galera-4", "mariadb-backup", *_TRANSFER)
_MARIADB = ("mariadb-server", "mariadb-client", *_GALERA)
# Packages of vendors; the first one has the version.
_PACKAGES = {
    "mariadb": _MARIADB,
    "mysql": ("mysql-community-server-core", "mysql-community-client"),
    "percona": ("percona-server-server", "percona-server-client"),
    "pxc": ("percona-xtradb-cluster-server", "percona-xtradb-cluster-client", *_TRANSFER),
}
# Packages of vendors that a server can do without: MySQL Router.
_EXTRAS = {"mysql": ("mysql-router-community",)}
LICENCES = {
    "mariadb": "GPL-2.0",
    "mysql": "GPL-2.0 (the Community Server)",
    "percona": "GPL-2.0",
    "pxc": "GPL-2.0",
}

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

# Percona XtraDB Cluster also has the scripts of its state transfers, with the programs that they run.
PXC_PROGRAMS = (*MYSQL_PROGRAMS, "wsrep_sst_*", "garbd", "xtrabackup", "xbstream", "socat", "pv", "ss", "ip", "ps")

# Programs that we use from a user's directory or from PATH. MySQL Shell may be among them.
PROGRAMS = {
    "mariadb": MARIADB_PROGRAMS,
    "mysql": (*MYSQL_PROGRAMS, "mysqlsh"),
    "percona": (*MYSQL_PROGRAMS, "mysqlsh"),
    "pxc": (*PXC_PROGRAMS, "mysqlsh"),
}

# Products that no machine of ours has started, from any source.
UNTRIED = ("percona", "pxc")

# The server that a product is built from: statements, options and statuses have the names of that server.
_UPSTREAM = {"percona": "mysql", "pxc": "mysql"}

# Dependencies that a server in the foreground does not use, or that every Debian and Ubuntu has: mostly perl, and
# programs that install packages. We report them to apt as installed, except those that an offer names. Percona's agent
# would report to Percona.
NOT_FETCHED = (
    "adduser", "base-files", "base-passwd", "dash", "debconf", "debianutils", "dpkg", "gawk", "init-system-helpers",
    "libcap2-bin", "libconfig-inifiles-perl", "libdbi-perl", "login.defs", "lsb-base", "lsof", "passwd",
    "percona-telemetry-agent", "perl", "perl-base", "psmisc", "rsync", "sysvinit-utils", "tar", "tzdata", "ucf",
    "usrmerge",
)  # fmt: skip


# The oldest version of each vendor that can be measured: statements and statuses of older servers have other names.
OLDEST = {"mariadb": (10, 5), "mysql": (8, 0, 29)}


@dataclasses.dataclass(frozen=True)
class Origin:
    """A suite that has a version, of a distribution or of a vendor's repository."""

    suite: str
    """The suite, such as bookworm."""

    packages: tuple[str, ...]
    """The names of the packages to install; the first one has the version."""

    exact: str = ""
    """The version that the first package must have, if the offer has no version; empty for any version."""

    repository: Repository | None = None
    """The vendor's repository with this suite; None for the distribution's own suite."""

    snapshot: str = ""
    """The time of a snapshot of Debian's archive that has the former suite; empty for the suite of today."""

    extras: tuple[str, ...] = ()
    """The names of packages that are fetched too if the suite has them."""

    @property
    def supplier(self) -> str:
        """Who supplies the packages: Debian, Ubuntu, Debian's snapshot archive, or a vendor's repository by title."""
        if self.snapshot:
            return SNAPSHOTS
        return self.repository.title if self.repository else "Debian" if self.suite in DEBIAN else "Ubuntu"

    @property
    def is_tried(self) -> bool:
        """Whether we have fetched from it and started a server; otherwise nobody has reported a try."""
        return self.repository is None and not self.snapshot and self.suite in DEBIAN


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

    @property
    def suppliers(self) -> tuple[str, ...]:
        """Who supplies it, first those that are asked first."""
        return tuple(dict.fromkeys(origin.supplier for origin in self.origins))


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
    (
        Origin("sid", _GUEST_PACKAGES, "7.2um1"),
        Origin("sid", _GUEST_PACKAGES, "7.2um1", snapshot=_SID),
        Origin("trixie", _GUEST_PACKAGES, "6.12um1"),
    ),
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
# Percona's tool for schema changes, a script in Perl with its database driver.
SCHEMA_CHANGE = "pt-online-schema-change"
_SCHEMA_CHANGE = dataclasses.replace(
    _tool(SCHEMA_CHANGE, ("percona-toolkit", "perl", "perl-base", "libdbi-perl", "libdbd-mysql-perl")),
    programs=(SCHEMA_CHANGE, "perl"),
)

_STAND_IN = dataclasses.replace(
    _tool(STAND_IN_SYSTEM, _STAND_IN_PACKAGES), programs=("ssh-keygen", "ssh-keyscan", "ssh")
)


def _server(product: str, series: str, suites: tuple[str, ...], *own: Origin) -> Offer:
    """A series of a server. ``suites``: those of the vendor's repository. ``own``: distributions that have it."""
    repository = REPOSITORIES.get((product, series))
    vendor = [
        Origin(suite, _PACKAGES[product], repository=repository, extras=_EXTRAS.get(product, ()))
        for suite in (suites if repository else ())
    ]
    programs = {"mariadb": MARIADB_PROGRAMS, "pxc": PXC_PROGRAMS}.get(product, MYSQL_PROGRAMS)
    return Offer(product, series, (*own, *vendor), programs)


def _packages_of_series(series: str) -> tuple[str, ...]:
    """The packages of a distribution that has the series in the names of its packages."""
    return (f"mariadb-server-{series}", f"mariadb-client-{series}", *_GALERA)


_MYSQL = ("mysql-server", "mysql-client", "mysql-router")
_MYSQL_8_0 = ("mysql-server-8.0", "mysql-client-8.0")
_SUITES = ("bookworm", "trixie", "noble", "jammy")

OFFERS = (
    _server("mariadb", "10.5", (), Origin("bullseye", _packages_of_series("10.5"))),
    _server("mariadb", "10.6", ("bullseye", "jammy"), Origin("jammy", _packages_of_series("10.6"))),
    _server(
        "mariadb",
        "10.11",
        ("bookworm", "bullseye", "noble", "jammy"),
        Origin("bookworm", _MARIADB),
        Origin("noble", _MARIADB),
    ),
    _server("mariadb", "11.4", ("bookworm", "noble", "jammy")),
    _server("mariadb", "11.8", _SUITES, Origin("trixie", _MARIADB)),
    _server("mariadb", "12.3", _SUITES),
    _server("mysql", "8.0", _SUITES, *(Origin(one, _MYSQL_8_0, extras=("mysql-router",)) for one in UBUNTU[::-1])),
    _server("mysql", "8.4", _SUITES),
    _server("mysql", "9.7", _SUITES, Origin("sid", _MYSQL), Origin("sid", _MYSQL, snapshot=_SID)),
    _server("percona", "8.0", ("bookworm", "noble", "jammy")),
    _server("percona", "8.4", ("bookworm", "noble", "jammy")),
    _server("pxc", "8.0", ("bookworm", "noble", "jammy")),
    _server("pxc", "8.4", ("bookworm", "noble", "jammy")),
    _tool("haproxy"),
    _tool("sysbench"),
    _SCHEMA_CHANGE,
    _GUEST,
    _STAND_IN,
)


def upstream(product: str) -> str:
    """The server that a product is built from: ``mysql`` for percona and pxc, otherwise the product itself."""
    return _UPSTREAM.get(product, product)


def offer(product: str, version: str) -> Offer | None:
    """The offer of a series, or of an exact version such as ``8.4.6``; None if there is none.

    An exact version may come from any source of its series, and first from an archive of exact versions. An offer
    without origins comes from an archive of tarballs.
    """
    row = next((known for known in OFFERS if (known.product, known.version) == (product, version)), None)
    if row or not is_exact(version):
        return row
    series = next(
        (known for known in OFFERS if known.product == product and version.startswith(f"{known.version}.")), None
    )
    archive = _archive_origins(product)
    if series is None:
        return Offer(product, version, archive, PROGRAMS[product]) if archive or product in TARBALLS else None
    return dataclasses.replace(series, version=version, origins=(*archive, *series.origins))


def newest_tried(product: str) -> str:
    """The name of the newest series of a product that we have fetched ourselves, such as ``mysql:9.7``."""
    return [row.name for row in OFFERS if row.product == product and any(one.is_tried for one in row.origins)][-1]


def _archive_origins(product: str) -> tuple[Origin, ...]:
    repository = ARCHIVES.get(product)
    suites = ("bookworm", "trixie", "bullseye", "noble", "jammy") if repository else ()
    return tuple(Origin(suite, _PACKAGES[product], repository=repository) for suite in suites)


def is_exact(version: str) -> bool:
    """Whether a version names a patch release, such as ``8.4.6``; ``8.4`` is the newest one of its series."""
    return bool(re.fullmatch(r"\d+(\.\d+){2,}", version))


def too_old(product: str, version: str, series: tuple[int, ...]) -> str:
    """Why this version is too old to be measured; empty if it is not, or if we do not know.

    series: the version as numbers, such as ``(5, 7)``. ``8.0`` passes, because it does not name a patch release;
    8.0.28 is too old.
    """
    if not series or series >= OLDEST[upstream(product)][: len(series)]:
        return ""
    oldest = " and ".join(f"{name} {'.'.join(map(str, numbers))}" for name, numbers in OLDEST.items())
    return f"{product} {version} is too old to be measured: the oldest versions are {oldest}"

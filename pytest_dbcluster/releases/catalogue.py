"""Which version comes from which suite, in which packages. Data."""

from __future__ import annotations

import dataclasses

DEBIAN = ("bullseye", "bookworm", "trixie", "sid")
UBUNTU = ("jammy", "noble")
WITHOUT_SECURITY = ("sid",)  # repairs come to it as new versions
ALIASES = ("stable", "oldstable", "oldoldstable", "testing", "unstable")

_GALERA = ("galera-4", "mariadb-backup", "socat", "pv", "iproute2", "procps")
_MARIADB = ("mariadb-server", "mariadb-client", *_GALERA)

# Each of the vendor's programs is 5 MB and holds the client library, so only those that a cluster uses are kept.
MARIADB_PROGRAMS = (
    "mariadb", "mysql", "mariadbd", "mysqld", "mbstream", "mariabackup", "my_print_defaults", "resolveip",
    *(f"mariadb-{name}" for name in ("admin", "backup", "binlog", "check", "dump", "install-db", "slap", "upgrade")),
    *(f"mysql{name}" for name in ("admin", "binlog", "check", "dump", "_install_db", "slap", "_upgrade")),
    "wsrep_sst_*", "galera_recovery", "socat", "pv", "ss", "ip", "ps",
)  # fmt: skip

MYSQL_PROGRAMS = (
    "mysqld", "mysql", "mysqladmin", "mysqlbinlog", "mysqldump", "mysqlslap", "mysqlrouter*", "my_print_defaults",
)  # fmt: skip

# What is taken out of a directory or PATH where users have put a server; there the shell may lie beside it.
PROGRAMS = {"mariadb": MARIADB_PROGRAMS, "mysql": (*MYSQL_PROGRAMS, "mysqlsh")}

# Of the closure, what a server in the foreground does not use, or what is part of every Debian and Ubuntu.
# apt is told that these are installed. Nearly all of it is perl and what installs packages.
NOT_FETCHED = (
    "adduser", "base-files", "base-passwd", "dash", "debconf", "debianutils", "dpkg", "gawk", "init-system-helpers",
    "libcap2-bin", "libconfig-inifiles-perl", "libdbi-perl", "login.defs", "lsb-base", "lsof", "passwd", "perl",
    "perl-base", "psmisc", "rsync", "sysvinit-utils", "tar", "tzdata", "ucf", "usrmerge",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Origin:
    """One suite that has a version, and the names that its packages have there."""

    suite: str
    packages: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Offer:
    """A version, or a tool, that can be fetched: where from, and what of it goes into bin/."""

    product: str
    version: str
    origins: tuple[Origin, ...]
    programs: tuple[str, ...]

    @property
    def name(self) -> str:
        """As users write it: ``mariadb:10.11``, ``sysbench``."""
        return f"{self.product}:{self.version}" if self.version else self.product


def _tool(name: str) -> Offer:
    # The host's own suite comes first whatever the order here; the newest stable one is next.
    suites = ("trixie", "bookworm", "bullseye", "noble", "jammy")
    return Offer(name, "", tuple(Origin(suite, (name,)) for suite in suites), (name,))


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
)


def offer(product: str, version: str) -> Offer | None:
    """The offer of this version, None when nobody is known to have it."""
    return next((known for known in OFFERS if (known.product, known.version) == (product, version)), None)

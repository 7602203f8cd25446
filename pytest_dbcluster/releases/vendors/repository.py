"""The apt repositories of vendors: addresses, components, keys and packages. Data only.

The sources of these facts are percona/percona-repositories at 1997a0d, docker-library/mysql at 7f30fdb,
MariaDB/mariadb-docker at 1b6429b, and Debian's package extrepo-offline-data 1.0.7. The name of the package of MySQL
Router is in mysql/mysql-server at 3056e817 (packaging/deb-in/deb_router.cmake). No row was tried by us.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

KEYS = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Repository:
    """An apt repository of a vendor."""

    vendor: str
    """The name of the vendor, such as MySQL."""

    title: str
    """The name in messages, such as MySQL's repository."""

    address: str
    """Its address, with ``{family}`` (debian or ubuntu) and ``{version}`` (an exact version)."""

    component: str
    """The component with the packages."""

    label: str
    """The Origin of its Release files."""

    mark: str
    """A part of address or component that tells this repository from others of its vendor."""

    own: tuple[str, ...]
    """Patterns of the packages whose version comes from the vendor, and not from the distribution."""

    fingerprint: str
    """The fingerprint of the key that signs it, 40 hexadecimal digits."""

    key: Path
    """The file with this key."""

    lacks: tuple[tuple[str, str], ...] = ()
    """Pairs of a family, such as Debian, and an architecture that the vendor does not build."""

    is_archive: bool = False
    """Each exact version has its own address."""

    tools: str = ""
    """Another component with packages that servers of every series use, such as MySQL Router; empty for none."""

    def address_for(self, family: str, version: str) -> str:
        """The address for Debian or Ubuntu. ``version``: the exact version, which only an archive needs."""
        return self.address.format(family=family.lower(), version=version)

    def refusal(self, family: str, architecture: str) -> str:
        """Why a machine of this architecture cannot use it; empty if it can, or if we do not know."""
        if (family, architecture) not in self.lacks:
            return ""
        return f"{self.title} has no packages for {architecture} on {family}"


def _mysql(series: str, component: str) -> Repository:
    return Repository(
        vendor="MySQL",
        title=f"MySQL's repository {component}",
        address="http://repo.mysql.com/apt/{family}",
        component=component,
        label="MySQL",
        mark=f" {component} ",
        own=("mysql-*", "libmysqlclient*"),
        fingerprint="BCA43417C3B485DD128EC6D4B7B3B788A8D3785C",
        key=KEYS / "mysql.asc",
        lacks=(("Debian", "arm64"),),
        tools="mysql-tools",
    )


def _mariadb(title: str, address: str, mark: str, *, is_archive: bool = False) -> Repository:
    return Repository(
        vendor="MariaDB",
        title=title,
        address=address,
        component="main",
        label="MariaDB",
        mark=mark,
        own=("mariadb-*", "libmariadb*", "galera-*", "mysql-common"),
        fingerprint="177F4010FE56CA3336300305F1656F24C74CD1D8",
        key=KEYS / "mariadb.asc",
        is_archive=is_archive,
    )


def _percona(name: str) -> Repository:
    return Repository(
        vendor="Percona",
        title=f"Percona's repository {name}",
        address=f"http://repo.percona.com/{name}/apt",
        component="main",
        label="Percona Development Team",
        mark=f"/{name}/",
        own=("percona-*", "libperconaserverclient*"),
        fingerprint="4D1BB29D63D98E422B2113B19334A25F8507EFA5",
        key=KEYS / "percona.asc",
    )


# Product and series -> the vendor's repository. The key of MySQL expires on 2027-10-23, the others do not expire.
REPOSITORIES = {
    **{
        ("mysql", series): _mysql(series, component)
        for series, component in (("8.0", "mysql-8.0"), ("8.4", "mysql-8.4-lts"), ("9.7", "mysql-9.7-lts"))
    },
    **{
        ("mariadb", series): _mariadb(
            f"MariaDB's repository {series}", f"https://deb.mariadb.org/{series}/{{family}}", f"/{series}/"
        )
        for series in ("10.6", "10.11", "11.4", "11.8", "12.3")
    },
    ("percona", "8.0"): _percona("ps-80"),
    ("percona", "8.4"): _percona("ps-84-lts"),
    ("pxc", "8.0"): _percona("pxc-80"),
    ("pxc", "8.4"): _percona("pxc-84-lts"),
}
# Product -> the archive with every exact version.
ARCHIVES = {
    "mariadb": _mariadb(
        "MariaDB's archive",
        "https://archive.mariadb.org/mariadb-{version}/repo/{family}",
        "/mariadb-",
        is_archive=True,
    )
}

"""The archives of vendors with a tarball of each patch release. Data only.

The names of MySQL's tarballs and their addresses are those in ProxySQL/dbdeployer at 0c3ec0e (tarball_list.json) and in
public build scripts. The manual of MySQL describes the signature files. No row was tried by us.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.releases.vendors.repository import KEYS, REPOSITORIES


@dataclasses.dataclass(frozen=True)
class Signer:
    """A key that signs tarballs."""

    vendor: str
    """The name of the vendor, such as MySQL."""

    title: str
    """The name of its archive in messages."""

    fingerprint: str
    """The fingerprint of the key, 40 hexadecimal digits."""

    key: Path
    """The file with this key."""


@dataclasses.dataclass(frozen=True)
class TarballArchive:
    """An archive with a tarball of each patch release, and a signature beside each tarball."""

    title: str
    """The name in messages, such as MySQL's archive."""

    addresses: Sequence[str]
    """Its directories, with ``{series}``, such as 8.4. The newest patch release may be in another one."""

    names: Mapping[str, Sequence[str]]
    """Architecture as dpkg names it -> the names of files, with ``{version}``; the first that exists is taken."""

    signers: Sequence[Signer]
    """The keys that sign its tarballs."""

    def files(self, version: str, architecture: str) -> list[str]:
        """The possible addresses of the tarball of a version, such as 8.4.6, in the order in which to try them."""
        series = version.rpartition(".")[0]
        places = [address.format(series=series) for address in self.addresses]
        names = [name.format(version=version) for name in self.names.get(architecture, ())]
        return [f"{place}/{name}" for name in names for place in places]


_MYSQL = "MySQL's archive"
_NOW = REPOSITORIES["mysql", "8.4"]
# Product -> its archive. MySQL signed up to 8.0.35 with the key of 2022, which expired in December 2023. A tarball
# named minimal has the same programs without debugging symbols.
TARBALLS = {
    "mysql": TarballArchive(
        title=_MYSQL,
        addresses=(
            "https://cdn.mysql.com/archives/mysql-{series}",
            "https://cdn.mysql.com/Downloads/MySQL-{series}",
        ),
        names={
            "amd64": (
                "mysql-{version}-linux-glibc2.28-x86_64-minimal.tar.xz",
                "mysql-{version}-linux-glibc2.17-x86_64-minimal.tar.xz",
                "mysql-{version}-linux-glibc2.12-x86_64.tar.xz",
            ),
            "arm64": (
                "mysql-{version}-linux-glibc2.28-aarch64-minimal.tar.xz",
                "mysql-{version}-linux-glibc2.28-aarch64.tar.xz",
                "mysql-{version}-linux-glibc2.17-aarch64-minimal.tar.xz",
                "mysql-{version}-linux-glibc2.17-aarch64.tar.gz",
            ),
        },
        signers=(
            Signer("MySQL", _MYSQL, _NOW.fingerprint, _NOW.key),
            Signer("MySQL", _MYSQL, "859BE8D7C586F538430B19C2467B942D3A79BD29", KEYS / "mysql-2022.asc"),
        ),
    )
}

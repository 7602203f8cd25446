"""The paths of programs and files of a release, for each layout of a server's files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

# Prefixes below the directory that a user names: a vendor's tarball, a prefix such as /usr, an unpacked package.
PREFIXES = ("", "usr", "usr/local")
# Oracle's packages have the messages in share/mysql-8.4, and the character sets there or in share/mysql. Percona's RPMs
# have a directory of their own.
SHARES = (
    "share/mariadb", "share/mysql-[0-9]*", "share/percona-server", "share/percona-xtradb-cluster", "share/mysql",
    "share",
)  # fmt: skip
_PLUGINS = ("lib/mysql/plugin", "lib/mariadb/plugin", "lib64/mysql/plugin", "lib/plugin", "lib64/plugin")
# galera4 is the directory of Percona XtraDB Cluster.
_GALERA = (
    *(f"{lib}/{name}" for name in ("galera", "galera-4", "galera4") for lib in ("lib", "lib64")),
    "lib", "lib64",
)  # fmt: skip
SERVERS = {"mariadb": ("mariadbd", "mysqld"), "mysql": ("mysqld",), "percona": ("mysqld",), "pxc": ("mysqld",)}
# Programs of Galera's full state transfers: the script, the backup program, and those that carry its output. XtraBackup
# of PXC lies in a directory beside the script.
TRANSFERS = {
    "mariadb": ("wsrep_sst_mariabackup", "mariadb-backup", "mbstream", "socat"),
    "pxc": ("wsrep_sst_xtrabackup-v2", "pxc_extra", "socat"),
}
# Text in the version of a server -> its product, the first that matches; a server without one of them is mysql.
_PRODUCTS = (("mariadb", "mariadb"), ("percona xtradb cluster", "pxc"), ("percona", "percona"))


def server_options(prefix: Path) -> dict[str, str]:
    """Options that a server below ``prefix`` needs, because it was built for another path."""
    options = {"basedir": str(prefix)}
    plugins = _first(prefix, _PLUGINS)
    if plugins:
        options["plugin-dir"] = str(plugins)
    for share in (path for part in SHARES for path in sorted(prefix.glob(part)) if path.is_dir()):
        if (share / "english").is_dir():
            options.setdefault("lc-messages-dir", str(share))
        if (share / "charsets").is_dir():
            options.setdefault("character-sets-dir", str(share / "charsets"))
    return options


def client_options(prefix: Path) -> dict[str, str]:
    """Options that the clients below ``prefix`` need: the directory of their authentication plugins."""
    for pattern in ("lib/*/libmariadb3/plugin", "lib/libmariadb3/plugin"):
        for path in sorted(prefix.glob(pattern)):
            return {"plugin-dir": str(path)}
    plugins = _first(prefix, _PLUGINS)
    return {"plugin-dir": str(plugins)} if plugins else {}


def wsrep_provider(prefix: Path) -> Path | None:
    """The path of the Galera library below ``prefix``; None if it is missing."""
    for part in _GALERA:
        path = prefix / part / "libgalera_smm.so"
        if path.exists():
            return path
    return None


def exact_version(output: str) -> str:
    """The version in the output of ``mariadbd --version``: ``10.11.18``. Empty if it has no version.

    MySQL servers print ``Ver 8.4.3 for Linux``, MariaDB servers ``Ver 10.11.18-MariaDB-...``.
    """
    match = re.search(r"(?:Ver|version)\s+(\d+(?:\.\d+)+)", output) or re.search(r"\b(\d+(?:\.\d+)+)", output)
    return match[1] if match else ""


def product_of(output: str) -> str:
    """``mariadb``, ``pxc``, ``percona`` or ``mysql``, from the output of the server's ``--version``."""
    # The path of the program comes before the version and may contain either name.
    match = re.search(r"\bVer\s.*", output)
    text = (match[0] if match else output).lower()
    return next((product for words, product in _PRODUCTS if words in text), "mysql")


def privacy_options(product: str) -> dict[str, str]:
    """Options with which the servers of a product report nothing to their vendor. Older versions ignore them."""
    return {"loose-percona-telemetry-disable": "1"} if product in ("percona", "pxc") else {}


def sysbench_environment(prefix: Path) -> Mapping[str, str]:
    """The variables that an unpacked sysbench needs to find its scripts and its client's plugins."""
    plugins = client_options(prefix).get("plugin-dir")
    lua = {"LUA_PATH": f"{prefix / 'share/sysbench'}/?.lua;;"}
    return {**lua, "MARIADB_PLUGIN_DIR": plugins} if plugins else lua


def _first(prefix: Path, parts: tuple[str, ...]) -> Path | None:
    return next((prefix / part for part in parts if (prefix / part).is_dir()), None)

"""The programs and files of a release in the layouts that servers come in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

# Below the directory that a user names: a vendor's tarball, a prefix such as /usr, an unpacked package.
PREFIXES = ("", "usr", "usr/local")
_SHARES = ("share/mariadb", "share/mysql", "share")
_PLUGINS = ("lib/mysql/plugin", "lib/mariadb/plugin", "lib64/mysql/plugin", "lib/plugin", "lib64/plugin")
_GALERA = ("lib/galera", "lib64/galera", "lib/galera-4", "lib64/galera-4", "lib", "lib64")
SERVERS = {"mariadb": ("mariadbd", "mysqld"), "mysql": ("mysqld",)}


def server_options(prefix: Path) -> dict[str, str]:
    """What a server below ``prefix`` must be told, because it was built for another place."""
    options = {"basedir": str(prefix)}
    plugins = _first(prefix, _PLUGINS)
    if plugins:
        options["plugin-dir"] = str(plugins)
    for share in (path for part in _SHARES if (path := prefix / part).is_dir()):
        if (share / "english").is_dir():
            options.setdefault("lc-messages-dir", str(share))
        if (share / "charsets").is_dir():
            options.setdefault("character-sets-dir", str(share / "charsets"))
    return options


def client_options(prefix: Path) -> dict[str, str]:
    """What the clients below ``prefix`` must be told: where their authentication plugins are."""
    for pattern in ("lib/*/libmariadb3/plugin", "lib/libmariadb3/plugin"):
        for path in sorted(prefix.glob(pattern)):
            return {"plugin-dir": str(path)}
    plugins = _first(prefix, _PLUGINS)
    return {"plugin-dir": str(plugins)} if plugins else {}


def wsrep_provider(prefix: Path) -> Path | None:
    """The Galera library below ``prefix``."""
    for part in _GALERA:
        path = prefix / part / "libgalera_smm.so"
        if path.exists():
            return path
    return None


def exact_version(words: str) -> str:
    """The version out of what ``mariadbd --version`` prints: ``10.11.18``. Empty when there is none.

    MySQL servers say ``Ver 8.4.3 for Linux``, MariaDB's ``Ver 10.11.18-MariaDB-...``.
    """
    match = re.search(r"(?:Ver|version)\s+(\d+(?:\.\d+)+)", words) or re.search(r"\b(\d+(?:\.\d+)+)", words)
    return match[1] if match else ""


def product_of(words: str) -> str:
    """``mariadb`` or ``mysql``, by what the server prints about itself."""
    # The path of the program stands before the version, and may hold either name.
    match = re.search(r"\bVer\s.*", words)
    return "mariadb" if "mariadb" in (match[0] if match else words).lower() else "mysql"


def sysbench_environment(prefix: Path) -> Mapping[str, str]:
    """The variables that an unpacked sysbench needs to find its scripts and its client's plugins."""
    plugins = client_options(prefix).get("plugin-dir")
    lua = {"LUA_PATH": f"{prefix / 'share/sysbench'}/?.lua;;"}
    return {**lua, "MARIADB_PLUGIN_DIR": plugins} if plugins else lua


def _first(prefix: Path, parts: tuple[str, ...]) -> Path | None:
    return next((prefix / part for part in parts if (prefix / part).is_dir()), None)

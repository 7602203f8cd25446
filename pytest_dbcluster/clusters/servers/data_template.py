"""Templates: a data directory made once for each release, from which every node starts as a copy.

A Galera template has been a cluster of one node and was shut down in good order, so that its InnoDB position
and its grastate.dat agree; then a joiner needs no state transfer. Beside the data lie the server's own list
of variables, against which options are checked, and the password of the control account.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_dbcluster import redaction
from pytest_dbcluster.clusters.dialects.dialect import Dialect
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import ADMIN, LOAD, Node
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.system import cache

READ_ONLY_VARIABLE, SESSION_VARIABLE = 1238, 1228  # ER_INCORRECT_GLOBAL_LOCAL_VAR, ER_LOCAL_VARIABLE
FILE = "template.json"  # the manifest
FORMAT = 2  # raised when what a template holds changes
# What belongs to the server that made the data, and not to those that start from it.
OWN_FILES = ("galera.cache", "gvwstate.dat", "ib_buffer_pool", "auto.cnf")


@dataclasses.dataclass(frozen=True)
class Variable:
    """One server variable, as the server itself describes it."""

    name: str
    value: str
    read_only: bool
    kind: str
    minimum: str
    maximum: str
    choices: tuple[str, ...]
    scope: str


@dataclasses.dataclass(frozen=True)
class Template:
    """A data directory to copy, the password of its control account, and the server's list of variables.

    initial: the options that were fixed when it was made.
    """

    data: Path
    password: str = dataclasses.field(repr=False)
    variables: Mapping[str, Variable]
    words: frozenset[str]
    initial: Mapping[str, str] = dataclasses.field(default_factory=dict)


def template(
    release: Release,
    host: Callable[[], Host],
    initial: Mapping[str, str],
    progress: Report = lambda _: None,
) -> Template:
    """The template of a release, made on ``host()`` when the cache has none.

    ``initial`` holds the options that are fixed when a data directory is made. Two processes at once are
    safe: one makes it, the other waits. Raises ProvisionError with the server's words when it cannot be made.
    """
    key = hashlib.sha256(json.dumps([FORMAT, release.key, sorted(initial.items())]).encode()).hexdigest()[:10]
    place = cache.root() / "templates" / f"{release.product}-{release.version}-{key}"
    with lock(place, progress):
        found = _read(place, initial)
        if found is None:
            progress(f"making the data template of {release.name} {release.version}")
            _make(release, host(), dict(initial), place)
            found = _read(place, initial)
    if found is None:
        raise ProvisionError(f"the data template of {release.name} was made and is gone again from {place}")
    return found


def _read(place: Path, initial: Mapping[str, str]) -> Template | None:
    """The template that lies in ``place``; None where there is none, or one that is not whole."""

    def parse(fields: Mapping[str, Any]) -> Template:
        rows = [Variable(**{**row, "choices": tuple(row["choices"])}) for row in fields["variables"]]
        password, words = redaction.remember(fields["password"]), frozenset(fields["words"])
        return Template(place / "data", password, {row.name: row for row in rows}, words, dict(initial))

    return cache.read_manifest(place / FILE, parse)


def lock(place: Path, progress: Report) -> contextlib.AbstractContextManager[None]:
    """Held by whoever makes or removes a template; a second one says that it waits. Raises ProvisionError."""
    waits_for = f"another process that makes or removes the data template {place.name}"
    return cache.held(place.with_name(f"{place.name}.lock"), progress=progress, waits_for=waits_for)


def _make(release: Release, host: Host, initial: dict[str, str], place: Path) -> None:
    words = dialect(release.product, release.version)
    node = Node("template", host, release, host.port(3306), redaction.new_password())
    server = [f"--{name.replace('_', '-')}={value}" for name, value in {**release.server_options, **initial}.items()]
    program, *install = [word.format(data=node.data) for word in words.install]
    host.run(
        [str(release.program(program)), *install, *(["--user=root"] if host.root else []), *server],
        seconds=120,
        environment={"PATH": f"{release.bin}:/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    host.push(_first_sql(words.create_accounts, node.password).encode(), f"{host.directory}/first.sql")
    node.configure({**initial, **_alone(release, words), "init_file": f"{host.directory}/first.sql"})
    try:
        node.start(*(["--wsrep-new-cluster"] if release.wsrep_provider else []))
        node.wait_answering(120)
        for (account,) in node.query(words.drop_others.format(user=ADMIN, load=LOAD)):
            node.query(f"DROP USER {account}")
        said = {"password": node.password, "variables": _variables(node), "words": sorted(_option_words(node))}
        node.stop()
    except BaseException:
        node.kill()
        raise
    _keep(Path(node.data), place, said)


def _first_sql(statements: tuple[str, ...], password: str) -> str:
    return "".join(f"{statement.format(user=ADMIN, load=LOAD, password=password)};\n" for statement in statements)


def _alone(release: Release, words: Dialect) -> dict[str, str]:
    plugins = [name for name in words.plugins if release.has(plugin_directory(release) / name)]
    own = {**words.alone, **({"plugin_load_add": ";".join(plugins)} if plugins else {})}
    if release.wsrep_provider is None:
        return own
    return own | {
        "wsrep_on": "ON",
        "wsrep_provider": str(release.wsrep_provider),
        "wsrep_cluster_address": "gcomm://",
        "wsrep_node_address": "127.0.0.1",
        "wsrep_provider_options": "gmcast.listen_addr=tcp://127.0.0.1:0;gcache.size=1M",
    }


def plugin_directory(release: Release) -> Path:
    """Where the server of a release has its plugins."""
    return Path(release.server_options.get("plugin-dir", release.bin))


def _variables(node: Node) -> list[dict[str, Any]]:
    rows = node.query(node.dialect.variables)
    fixed = {name for name, *_ in rows if not _settable(node, name)} if node.dialect.probed else set()
    return [
        {
            "name": name,
            "value": value,
            "read_only": bool(read_only) or name in fixed,
            "kind": kind,
            "minimum": minimum,
            "maximum": maximum,
            "choices": choices.split(",") if choices else [],
            "scope": scope,
        }
        for name, value, read_only, kind, minimum, maximum, choices, scope in rows
    ]


def _settable(node: Node, name: str) -> bool:
    """Whether a running server lets a variable be set; it is set to the value that it has."""
    try:
        node.query(f"SET GLOBAL {name} = @@global.{name}")
    except SQLError as error:
        return error.number not in (READ_ONLY_VARIABLE, SESSION_VARIABLE)
    return True


def _option_words(node: Node) -> set[str]:
    """Every option the server's help lists: some options are no variables (skip-name-resolve, ...)."""
    text = node.host.run(
        [str(node.release.program(node.dialect.server)), "--no-defaults", "--verbose", "--help"]
        + (["--user=root"] if node.host.root else [])
        + [f"--{name.replace('_', '-')}={value}" for name, value in node.release.server_options.items()],
        seconds=60,
    ).stdout
    words = set()
    for line in text.splitlines():
        for part in line.strip().split(",")[:2]:
            if part.strip().startswith("--"):
                words.add(part.strip()[2:].split("=")[0].split("[")[0].split()[0].replace("-", "_").lower())
    return words


def _keep(data: Path, place: Path, said: Mapping[str, Any]) -> None:
    """Put the finished data beside its description, whole or not at all. The caller holds the lock of the place."""
    with cache.staged(place.name, among=place.parent, mode=0o700) as fresh:
        for leftover in OWN_FILES:
            (data / leftover).unlink(missing_ok=True)
        shutil.copytree(data, fresh / "data")
        cache.write_manifest(fresh / FILE, said, mode=0o600)

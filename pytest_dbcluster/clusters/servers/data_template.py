"""Templates: one data directory for each release, made once and cached. Every node starts from a copy.

A Galera template comes from a cluster of one node after a clean shutdown. Its InnoDB position and its grastate.dat
agree, so a joiner needs no state transfer. The manifest beside the data has the server's list of variables, which we
check options against. It also has the password of the control account.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster import redaction, wait
from pytest_dbcluster.clusters.dialects.dialect import Dialect
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers import path_options
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import ADMIN, LOAD, Node
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Completed, Host
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.system import cache

READ_ONLY_VARIABLE, SESSION_VARIABLE = 1238, 1228  # ER_INCORRECT_GLOBAL_LOCAL_VAR, ER_LOCAL_VARIABLE
NOT_READY = 1047  # ER_UNKNOWN_COM_ERROR: "WSREP has not yet prepared node for application use"
FILE = "template.json"  # the manifest
FORMAT = 2  # part of the cache key; raise it when the contents of a template change
# Files of the server that made the data; copies must not have them.
OWN_FILES = ("galera.cache", "gvwstate.dat", "ib_buffer_pool", "auto.cnf")


@dataclasses.dataclass(frozen=True)
class Variable:
    """One server variable, as the server itself describes it."""

    name: str
    """The name in lower case."""

    value: str
    """The value on the server that made the template."""

    read_only: bool
    """Whether a running server refuses to change it."""

    kind: str
    """The vendor's type, such as ``ENUM`` or ``BIGINT UNSIGNED``; empty if unknown."""

    minimum: str
    """The lower bound as text; empty if unknown."""

    maximum: str
    """The upper bound as text; empty if unknown."""

    choices: tuple[str, ...]
    """The values of an ENUM; empty if unknown."""

    scope: str
    """The scope, such as ``GLOBAL`` or ``SESSION``."""


@dataclasses.dataclass(frozen=True)
class Template:
    """A data directory to copy, with the facts about the server that made it."""

    data: Path
    """The path of the data directory."""

    password: str = dataclasses.field(repr=False)
    """The password of the control and the workload account."""

    variables: Mapping[str, Variable]
    """The server's variables by name."""

    words: frozenset[str]
    """The option names that the server's --help lists."""

    initial: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The options that are fixed when a data directory is made."""


def template(
    release: Release,
    host: Callable[[], Host],
    initial: Mapping[str, str],
    progress: Report = lambda _: None,
) -> Template:
    """Return the template of a release from the cache; if it is missing, make it on ``host()``.

    initial: the options that are fixed when a data directory is made. Two processes at once are safe: one makes the
    template, the other waits. Raises ProvisionError with the server's message if making fails.
    """
    directory = directory_of(release, initial)
    with lock(directory, progress):
        cache.set_aside_if_damaged(directory, FILE, progress)
        cached = _read(directory, initial)
        if cached is None:
            progress(f"making the data template of {release.name} {release.version}")
            _make(release, host(), dict(initial), directory)
            cached = _read(directory, initial)
    if cached is None:
        raise ProvisionError(
            f"the data template of {release.name} was made, but another program removed it from {directory}; try again"
        )
    return cached


def upgraded_template(
    origin: Template, release: Release, host: Callable[[], Host], progress: Report = lambda _: None
) -> Template:
    """Return a template of a newer release with the data of ``origin``, whose accounts and positions it keeps.

    It is what a server has after an upgrade in place. Otherwise as ``template``.
    """
    key = hashlib.sha256(json.dumps([FORMAT, release.key, origin.data.parent.name]).encode()).hexdigest()[:10]
    directory = cache.root() / "templates" / f"{release.product}-{release.version}-{key}"
    with lock(directory, progress):
        cache.set_aside_if_damaged(directory, FILE, progress)
        cached = _read(directory, origin.initial)
        if cached is None:
            progress(f"upgrading the data template {origin.data.parent.name} to {release.name} {release.version}")
            _upgrade(origin, release, host(), directory)
            cached = _read(directory, origin.initial)
    if cached is None:
        raise ProvisionError(f"another program removed the upgraded data template {directory}; try again")
    return cached


def directory_of(release: Release, initial: Mapping[str, str]) -> Path:
    """The directory of the template with these initial options; it need not exist."""
    key = hashlib.sha256(json.dumps([FORMAT, release.key, sorted(initial.items())]).encode()).hexdigest()[:10]
    return cache.root() / "templates" / f"{release.product}-{release.version}-{key}"


def _read(directory: Path, initial: Mapping[str, str]) -> Template | None:
    """Return the template in this directory; None if there is none or it is incomplete."""

    def parse(fields: Mapping[str, Any]) -> Template:
        variables = [Variable(**{**row, "choices": tuple(row["choices"])}) for row in fields["variables"]]
        password, words = redaction.remember(fields["password"]), frozenset(fields["words"])
        by_name = {variable.name: variable for variable in variables}
        return Template(directory / "data", password, by_name, words, dict(initial))

    return cache.read_manifest(directory / FILE, parse)


def lock(directory: Path, progress: Report) -> contextlib.AbstractContextManager[None]:
    """Return the lock for making or removing the template in this directory; reports a wait. Raises ProvisionError."""
    waits_for = f"another process that makes or removes the data template {directory.name}"
    return cache.hold_file(lock_file(directory), progress=progress, waits_for=waits_for)


def lock_file(directory: Path) -> Path:
    """The file of the lock of a template; it need not exist."""
    return directory.with_name(f"{directory.name}.lock")


def _make(release: Release, host: Host, initial: dict[str, str], directory: Path) -> None:
    path_options.require_inside(initial)  # the installation program gets them on its command line
    vendor = dialect(release.product, release.version)
    node = Node("template", host, release, host.port(3306), redaction.new_password())
    server = [f"--{name.replace('_', '-')}={value}" for name, value in {**release.server_options, **initial}.items()]
    program, *install = [argument.format(data=node.data, directory=host.directory) for argument in vendor.install]
    host.run(
        [str(release.program(program)), *install, *(["--user=root"] if host.root else []), *server],
        seconds=120,
        environment={"PATH": f"{release.bin}:/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    host.push(_first_sql(vendor.create_accounts, node.password).encode(), f"{host.directory}/first.sql")
    options, words = _template_options(release, vendor), vendor.galera if release.wsrep_provider else None
    node.configure({**options, "init_file": f"{host.directory}/first.sql"}, initial)
    try:
        if words and words.alone:
            node.start(*words.alone)
            node.wait_answering(120)
            node.stop()
            node.configure(options, initial)
        node.start(*(["--wsrep-new-cluster"] if words else []))
        node.wait_answering(120)
        wait.until(lambda: _not_ready(node), f"node {node.name}, to read its tables", seconds=120)
        for (account,) in node.query(vendor.drop_others.format(user=ADMIN, load=LOAD)):
            node.query(f"DROP USER {account}")
        manifest = _stop_and_describe(node)
    except BaseException:
        node.kill()
        raise
    _keep(node, directory, manifest)


def _stop_and_describe(node: Node) -> dict[str, Any]:
    """Stop a server, and return what the template keeps of it."""
    text = help_text(node.release, node.host, "--no-defaults").stdout
    found = {"password": node.password, "variables": _variables(node), "words": sorted(option_words(text))}
    node.stop()
    return found


def _upgrade(origin: Template, release: Release, host: Host, directory: Path) -> None:
    """Start the newer server on a copy of the data, run the vendor's upgrade program, and keep the result.

    MySQL has no such program, and some directories lack it: then the server does what it does at its start.
    Galera is off, so the position of the data stays as it is.
    """
    vendor = dialect(release.product, release.version)
    node = Node("template", host, release, host.port(3306), origin.password)
    host.copy_tree(str(origin.data), node.data)
    node.configure(dict(vendor.single_server_options), origin.initial)
    try:
        node.start()
        node.wait_answering(120)
        if vendor.upgrade and release.path_of(vendor.upgrade[0]):
            run_upgrade(node)
        manifest = _stop_and_describe(node)
    except BaseException:
        node.kill()
        raise
    _keep(node, directory, manifest)


def run_upgrade(node: Node) -> None:
    """Upgrade the system tables of a running server with the vendor's program, outside replication."""
    program, *arguments = node.dialect.upgrade
    run_client(node, program, *arguments, seconds=300)


def run_client(node: Node, program: str, *arguments: str, seconds: float) -> Completed:
    """Run a client program of the node's release with the control account, whose password is in a file.

    Raises ConfigError for a missing program, and CommandFailed.
    """
    plain = [] if node.dialect.control_tls else [argument.removeprefix("--") for argument in node.dialect.plain]
    options = [*(f"{name} = {value}" for name, value in node.release.client_options.items()), *plain]
    return node.host.run(
        [str(node.release.program(program)), f"--defaults-file={client_file(node, program, options)}", *arguments],
        seconds=seconds,
        environment={"PATH": f"{node.release.bin}:/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def client_file(node: Node, name: str, options: Sequence[str] = ()) -> str:
    """Write an option file with the control account and more lines on the node's host. Returns its path there."""
    account = {"user": ADMIN, "password": node.password, "host": node.host.address, "port": str(node.port)}
    lines = [f"{key} = {value}" for key, value in {**account, "protocol": "tcp"}.items()]
    path = f"{node.host.directory}/{name}.cnf"
    node.host.push("\n".join(["[client]", *lines, *options, ""]).encode(), path)
    return path


def _not_ready(node: Node) -> list[str]:
    """Return why a node that answers does not read tables yet; empty when it does. Galera nodes answer earlier."""
    try:
        node.query("SELECT COUNT(*) FROM mysql.user")
    except SQLError as error:
        if error.number != NOT_READY:
            raise
        return [str(error)]
    return []


def _first_sql(statements: tuple[str, ...], password: str) -> str:
    return "".join(f"{statement.format(user=ADMIN, load=LOAD, password=password)};\n" for statement in statements)


def _template_options(release: Release, vendor: Dialect) -> dict[str, str]:
    plugins = [name for name in vendor.plugins if release.has(plugin_directory(release) / name)]
    options = {**vendor.single_server_options, **({"plugin_load_add": ";".join(plugins)} if plugins else {})}
    if release.wsrep_provider is None or vendor.galera is None:
        return options
    return options | {
        **vendor.galera.every,
        **vendor.galera.preset,
        "wsrep_provider": str(release.wsrep_provider),
        "wsrep_cluster_address": "gcomm://",
        "wsrep_node_address": "127.0.0.1",
        "wsrep_provider_options": "gmcast.listen_addr=tcp://127.0.0.1:0;gcache.size=1M",
    }


def plugin_directory(release: Release) -> Path:
    """Return the path of the directory with the plugins of this release's server."""
    return Path(release.server_options.get("plugin-dir", release.bin))


def _variables(node: Node) -> list[dict[str, Any]]:
    rows = node.query(node.dialect.variables)
    kept = node.dialect.galera.not_probed if node.dialect.galera else frozenset()
    names = [name for name, *_ in rows] if node.dialect.probed else []
    refused = {name for name in names if name in kept or not _settable(node, name)}
    return [
        {
            "name": name,
            "value": value,
            "read_only": bool(read_only) or name in refused,
            "kind": kind,
            "minimum": minimum,
            "maximum": maximum,
            "choices": choices.split(",") if choices else [],
            "scope": scope,
        }
        for name, value, read_only, kind, minimum, maximum, choices, scope in rows
    ]


def _settable(node: Node, name: str) -> bool:
    """Return whether a running server can set a variable; the test sets it to its current value."""
    try:
        node.query(f"SET GLOBAL {name} = @@global.{name}")
    except SQLError as error:
        return error.number not in (READ_ONLY_VARIABLE, SESSION_VARIABLE)
    return True


def help_text(release: Release, host: Host, *arguments: str) -> Completed:
    """Run the release's server with ``arguments`` and ``--verbose --help``: it only lists its options.

    The first of ``arguments`` is ``--no-defaults`` or ``--defaults-file=...``. Raises CommandFailed.
    """
    return ask_server(release, host, *arguments, "--verbose", "--help")


def ask_server(release: Release, host: Host, *arguments: str) -> Completed:
    """Run the release's server with options that make it print and end. Raises CommandFailed."""
    server = release.program(dialect(release.product, release.version).server)
    own = [f"--{name.replace('_', '-')}={value}" for name, value in release.server_options.items()]
    root = ["--user=root"] if host.root else []
    return host.run([str(server), *arguments, *root, *own], seconds=60)


def option_words(text: str) -> frozenset[str]:
    """Return every option name in a server's --help; some options are not variables (skip-name-resolve, ...)."""
    names = set()
    for line in text.splitlines():
        for part in line.strip().split(",")[:2]:
            if part.strip().startswith("--"):
                names.add(part.strip()[2:].split("=")[0].split("[")[0].split()[0].replace("-", "_").lower())
    return frozenset(name for name in names if re.fullmatch(r"[a-z0-9]\w*", name))  # skips lines of dashes


def _keep(node: Node, directory: Path, manifest: Mapping[str, Any]) -> None:
    """Move the finished data to ``directory``, with its manifest, atomically. The caller holds the directory's lock."""
    with cache.stage(directory.name, among=directory.parent, mode=0o700) as fresh:
        node.host.take_tree(node.data, data := fresh / "data")
        for name in OWN_FILES:
            (data / name).unlink(missing_ok=True)
        cache.write_manifest(fresh / FILE, manifest, mode=0o600)

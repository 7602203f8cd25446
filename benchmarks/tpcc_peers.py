"""What the scripts about TPC-C share: one server, and the clients that ours is compared with on it.

Each client has tables of its own there, but for the driver in Python (tpcc_connector.py), which uses ours. A client
that this machine does not have is left out, and ``missing`` says why.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks import ratios, stage
from pytest_dbcluster import ClusterSpec, ReleaseName, redaction
from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA
from pytest_dbcluster.workloads.workload import Setting

# The tables of all clients, about 100 MB a warehouse each, are in memory: none pays for another's pages.
SERVER = ClusterSpec("standalone").with_options(innodb_buffer_pool_size="1G")
ACCOUNT = "tpcc_peer"  # may use the schemas of this comparison only, for its password is on a command line
LOAD_SECONDS = 600.0
GRACE = 60.0  # seconds beyond the measured ones
DIRECTORY = "SYSBENCH_TPCC"
CONNECTOR = Path(__file__).with_name("tpcc_connector.py")


@dataclasses.dataclass(frozen=True)
class Place:
    """Where all clients run: the server's setting, the account of the others, and how much there is to do."""

    setting: Setting
    account: Endpoint
    warehouses: int = 1
    threads: int = 4

    def client(
        self, command: Sequence[str], seconds: float, more: Mapping[str, str] | None = None, text: str = ""
    ) -> None:
        """Run a client to its end, as a child of this process. Raises CommandFailed."""
        self.setting.client.run(command, seconds=seconds, environment=more, text=text)

    def empty(self, schema: str) -> None:
        """The schema anew, without tables."""
        for statement in (f"DROP DATABASE IF EXISTS {schema}", f"CREATE DATABASE {schema}"):
            self.setting.cluster.nodes[0].query(statement)


class Peer(Protocol):
    """A client of TPC-C that is not ours."""

    @property
    def name(self) -> str:
        """As its users call it."""

    @property
    def schema(self) -> str:
        """Where its tables are; empty when it uses ours."""

    def missing(self) -> str:
        """What this machine lacks to run it, and where it is looked for; empty when it can run."""

    def load(self, place: Place) -> None:
        """Fill its tables, into its schema that is empty."""

    def run(self, place: Place, seconds: float) -> None:
        """The standard mix for so many seconds."""


class GoTPC:
    """The program go-tpc, on PATH."""

    name = "go-tpc"
    schema = "go_tpc"

    def missing(self) -> str:
        """Whether it is on PATH."""
        return "" if shutil.which(self.name) else f"no {self.name} on PATH"

    def load(self, place: Place) -> None:
        """Its tables, without the check of them that is part of its prepare."""
        self._call(place, ["prepare", "--no-check"], LOAD_SECONDS)

    def run(self, place: Place, seconds: float) -> None:
        """Errors do not end it: a deadlock would end the thread that met it."""
        self._call(place, ["run", "--ignore-error", "--silence", f"--time={seconds:g}s"], seconds + GRACE)

    def _call(self, place: Place, what: Sequence[str], seconds: float) -> None:
        to = place.account
        server = ["-H", to.host, "-P", str(to.port), "-U", to.user, "-p", to.password, "-D", self.schema]
        size = ["-T", str(place.threads), "--warehouses", str(place.warehouses)]
        place.client([self.name, "tpcc", *what, *server, *size], seconds)


@dataclasses.dataclass(frozen=True)
class SysbenchTPCC:
    """The Lua scripts sysbench-tpcc in a directory, run by the sysbench that runs ours."""

    directory: str
    name: str = "sysbench-tpcc"
    schema: str = "sysbench_tpcc"

    def missing(self) -> str:
        """Whether the directory has them."""
        if not self.directory:
            return f"no directory given (--sysbench-tpcc DIR, or {DIRECTORY} in the environment)"
        return "" if (Path(self.directory) / "tpcc.lua").is_file() else f"no tpcc.lua in {self.directory}"

    def load(self, place: Place) -> None:
        """Its tables; it waits 30 s by itself."""
        self._call(place, "prepare", ["--use_fk=0"], LOAD_SECONDS)

    def run(self, place: Place, seconds: float) -> None:
        """The mix of its own: 10 New-Order and 10 Payment to one of each other kind."""
        self._call(place, "run", [f"--time={seconds:g}"], seconds + GRACE)

    def _call(self, place: Place, what: str, more: Sequence[str], seconds: float) -> None:
        tool, to = sysbench_driver.sysbench(place.setting), place.account
        secret = f"{place.setting.client.directory}/sysbench-tpcc.cnf"
        place.setting.client.push(f"mysql-user={to.user}\nmysql-password={to.password}\n".encode(), secret)
        server = [f"--mysql-host={to.host}", f"--mysql-port={to.port}", f"--mysql-db={self.schema}"]
        size = [f"--threads={place.threads}", "--tables=1", f"--scale={place.warehouses}"]
        directory = Path(self.directory).resolve()
        command = [str(tool.program("sysbench")), f"--config-file={secret}", *server, *size, *more]
        paths = {"LUA_PATH": f"{directory}/?.lua;{tool.scripts}/?.lua;;"}
        place.client([*command, str(directory / "tpcc.lua"), what], seconds, {**tool.environment, **paths})


class Connector:
    """The driver in Python, in a process of its own, on our tables."""

    name = "mysql-connector-python"
    schema = ""

    def missing(self) -> str:
        """Nothing: the project itself needs the package."""
        return ""

    def load(self, place: Place) -> None:
        """Nothing: it uses the tables that are there."""

    def kind(self) -> str:
        """How the package comes here, which makes a difference of nearly two: its extension needs a newer OpenSSL."""
        asked = [sys.executable, "-c", "from mysql.connector import HAVE_CEXT; print(HAVE_CEXT)"]
        extension = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == "True"
        return f"{self.name} runs {'with its C extension' if extension else 'as pure Python'} here"

    def run(self, place: Place, seconds: float) -> None:
        """The same mix with the same number of connections, each in a thread."""
        to = place.setting.cluster.writer()
        server = ["--host", to.host, "--port", str(to.port), "--user", to.user, "--schema", SCHEMA]
        size = ["--threads", str(place.threads), "--warehouses", str(place.warehouses), "--seconds", str(seconds)]
        place.client([sys.executable, str(CONNECTOR), *server, *size], seconds + GRACE, text=to.password)


def arguments(description: str | None, runs: int, what: str) -> argparse.ArgumentParser:
    """A parser with --runs and --sysbench-tpcc."""
    parser = ratios.arguments(description, runs, what)
    given = os.environ.get(DIRECTORY, "")
    text = f"a checkout of sysbench-tpcc; {DIRECTORY} in the environment says it too"
    parser.add_argument("--sysbench-tpcc", metavar="DIR", default=given, help=text)
    return parser


def seconds(text: str) -> float:
    """A number above 0, from the command line."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return found


def split(peers: Sequence[Peer]) -> tuple[list[Peer], dict[str, str]]:
    """Those that can run, and of the others what they miss."""
    missing = {peer.name: lacks for peer in peers if (lacks := peer.missing())}
    return [peer for peer in peers if peer.name not in missing], missing


@contextlib.contextmanager
def lone_server(warehouses: int = 1, **options: str) -> Iterator[Place]:
    """One server with an account for the other clients, and sysbench beside it; ended with the block."""
    find.find("sysbench", progress=stage.tell)
    with stage.clusters() as pool:
        variant = pool.resolution.resolve(SERVER.with_options(**options).on_release(ReleaseName.parse(DEFAULT_RELEASE)))
        cluster = pool.running([variant])[0].cluster
        node, password = cluster.nodes[0], redaction.new_password()
        node.query(f"CREATE USER {ACCOUNT}@'%' IDENTIFIED BY '{password}'")
        for schema in (GoTPC.schema, SysbenchTPCC.schema):
            node.query(f"GRANT ALL PRIVILEGES ON {schema}.* TO {ACCOUNT}@'%'")
        account = Endpoint(node.host.address, node.port, ACCOUNT, password, nodes=(node.name,), tls=False)
        client = pool.client(variant.release)
        yield Place(Setting(cluster, client, variant.release, "quick", stage.tell), account, warehouses)

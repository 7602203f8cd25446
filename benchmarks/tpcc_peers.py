"""Shared code of the TPC-C scripts: one server or a cluster, and the other clients of the comparison.

Each client has its own tables, except for the Python client (tpcc_connector.py), which uses the plugin's tables. A
client that this machine lacks is skipped; its ``missing`` returns the reason.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import functools
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

# The tables of all clients, about 100 MB per warehouse each, fit in memory, so that none evicts another's pages.
BUFFER_POOL = {"innodb_buffer_pool_size": "1G"}
SERVER = ClusterSpec("standalone", options=BUFFER_POOL)
CLUSTER = ClusterSpec("galera", nodes=3, options=BUFFER_POOL)
ACCOUNT = "tpcc_peer"  # has access only to the schemas of the comparison, because its password is on a command line
LOAD_SECONDS = 600.0
GRACE = 60.0  # additional seconds before a client times out
DIRECTORY = "SYSBENCH_TPCC"
CONNECTOR = Path(__file__).with_name("tpcc_connector.py")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The setting of all clients: the servers, the account of the other clients, and the scale."""

    setting: Setting
    account: Endpoint
    warehouses: int = 1
    threads: int = 4

    @property
    def ports(self) -> list[str]:
        """The ports of all servers; the address is the account's."""
        return [str(node.port) for node in self.setting.cluster.nodes]

    def client(
        self, command: Sequence[str], seconds: float, more: Mapping[str, str] | None = None, text: str = ""
    ) -> None:
        """Run a client as a child of this process and wait for its end. Raises CommandFailed."""
        self.setting.client.run(command, seconds=seconds, environment=more, text=text)

    def empty(self, schema: str) -> None:
        """Drop the schema and create it again, without tables."""
        for statement in (f"DROP DATABASE IF EXISTS {schema}", f"CREATE DATABASE {schema}"):
            self.setting.cluster.nodes[0].query(statement)


class Peer(Protocol):
    """Another TPC-C client."""

    @property
    def name(self) -> str:
        """The name of the client."""

    @property
    def schema(self) -> str:
        """The schema of its tables; empty if it uses the plugin's tables."""

    def missing(self) -> str:
        """The missing part and where it was looked for; empty if the client can run."""

    def load(self, comparison: Comparison) -> None:
        """Load its tables into its empty schema."""

    def run(self, comparison: Comparison, seconds: float) -> None:
        """Run the standard mix for ``seconds`` seconds."""


class GoTPC:
    """The program go-tpc, on PATH."""

    name = "go-tpc"
    schema = "go_tpc"

    def missing(self) -> str:
        """The reason if it is not on PATH; otherwise empty."""
        return "" if shutil.which(self.name) else f"no {self.name} on PATH"

    def load(self, comparison: Comparison) -> None:
        """Load its tables, without the check in its prepare command."""
        port = str(comparison.account.port)
        self._call(comparison, ["prepare", "--no-check"], port, comparison.threads, LOAD_SECONDS)

    def run(self, comparison: Comparison, seconds: float) -> None:
        """Run the standard mix and ignore errors; otherwise a deadlock would end its thread.

        A cluster gets one process for each server, with a part of the threads: go-tpc 1.0.7 takes only one port.
        """
        mix, ports = ["run", "--ignore-error", "--silence", f"--time={seconds:g}s"], comparison.ports
        threads = [len(range(first, comparison.threads, len(ports))) for first in range(len(ports))]
        with concurrent.futures.ThreadPoolExecutor(len(ports)) as running:
            call = functools.partial(self._call, comparison, mix, seconds=seconds + GRACE)
            list(running.map(call, ports, threads))

    def _call(self, comparison: Comparison, what: Sequence[str], port: str, threads: int, seconds: float) -> None:
        to = comparison.account
        server = ["-H", to.host, "-P", port, "-U", to.user, "-p", to.password, "-D", self.schema]
        size = ["-T", str(threads), "--warehouses", str(comparison.warehouses)]
        comparison.client([self.name, "tpcc", *what, *server, *size], seconds)


@dataclasses.dataclass(frozen=True)
class SysbenchTPCC:
    """The Lua scripts sysbench-tpcc in a directory, run by the same sysbench as the plugin's workloads."""

    directory: str
    name: str = "sysbench-tpcc"
    schema: str = "sysbench_tpcc"

    def missing(self) -> str:
        """The reason if the directory lacks the scripts; otherwise empty."""
        if not self.directory:
            return f"no directory given (--sysbench-tpcc DIR, or {DIRECTORY} in the environment)"
        return "" if (Path(self.directory) / "tpcc.lua").is_file() else f"no tpcc.lua in {self.directory}"

    def load(self, comparison: Comparison) -> None:
        """Load its tables; the script waits 30 s by itself."""
        to = str(comparison.account.port)
        self._call(comparison, "prepare", ["--use_fk=0"], to, LOAD_SECONDS)

    def run(self, comparison: Comparison, seconds: float) -> None:
        """Run its own mix: 10 New-Order and 10 Payment for each one of the other types."""
        self._call(comparison, "run", [f"--time={seconds:g}"], ",".join(comparison.ports), seconds + GRACE)

    def _call(self, comparison: Comparison, what: str, more: Sequence[str], ports: str, seconds: float) -> None:
        tool, to = sysbench_driver.sysbench(comparison.setting), comparison.account
        secret = f"{comparison.setting.client.directory}/sysbench-tpcc.cnf"
        comparison.setting.client.push(f"mysql-user={to.user}\nmysql-password={to.password}\n".encode(), secret)
        server = [f"--mysql-host={to.host}", f"--mysql-port={ports}", f"--mysql-db={self.schema}"]
        size = [f"--threads={comparison.threads}", "--tables=1", f"--scale={comparison.warehouses}"]
        directory = Path(self.directory).resolve()
        command = [str(tool.program("sysbench")), f"--config-file={secret}", *server, *size, *more]
        paths = {"LUA_PATH": f"{directory}/?.lua;{tool.scripts}/?.lua;;"}
        comparison.client([*command, str(directory / "tpcc.lua"), what], seconds, {**tool.environment, **paths})


class Connector:
    """The Python client, in its own process, on the plugin's tables."""

    name = "mysql-connector-python"
    schema = ""

    def missing(self) -> str:
        """Always empty: the package is a dependency of the project."""
        return ""

    def load(self, comparison: Comparison) -> None:
        """Does nothing: the plugin has loaded the tables."""

    def kind(self) -> str:
        """Whether the package has its C extension, which needs a newer OpenSSL and is nearly twice as fast."""
        asked = [sys.executable, "-c", "from mysql.connector import HAVE_CEXT; print(HAVE_CEXT)"]
        extension = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == "True"
        return f"{self.name} runs {'with its C extension' if extension else 'as pure Python'} here"

    def run(self, comparison: Comparison, seconds: float) -> None:
        """Run the standard mix with the same number of connections, one thread per connection."""
        to = comparison.setting.cluster.writer()
        server = ["--host", to.host, "--port", str(to.port), "--user", to.user, "--schema", SCHEMA]
        size = ["--threads", str(comparison.threads), "--warehouses", str(comparison.warehouses)]
        command = [sys.executable, str(CONNECTOR), *server, *size, "--seconds", str(seconds)]
        comparison.client(command, seconds + GRACE, text=to.password)


def arguments(description: str | None, runs: int, what: str) -> argparse.ArgumentParser:
    """A parser with --runs and --sysbench-tpcc."""
    parser = ratios.arguments(description, runs, what)
    given = os.environ.get(DIRECTORY, "")
    text = f"a checkout of sysbench-tpcc (default: the environment variable {DIRECTORY})"
    parser.add_argument("--sysbench-tpcc", metavar="DIR", default=given, help=text)
    return parser


def seconds(text: str) -> float:
    """A number above 0, from the command line."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def split(peers: Sequence[Peer]) -> tuple[list[Peer], dict[str, str]]:
    """The clients that can run, and the reasons of the others by name."""
    missing = {peer.name: lacks for peer in peers if (lacks := peer.missing())}
    return [peer for peer in peers if peer.name not in missing], missing


@contextlib.contextmanager
def servers(spec: ClusterSpec = SERVER, warehouses: int = 1, threads: int = 4) -> Iterator[Comparison]:
    """A server or a cluster with an account for the other clients, and sysbench; stopped at the end of the block."""
    find.find("sysbench", progress=stage.tell)
    with stage.clusters() as pool:
        variant = pool.resolution.resolve(spec.on_release(ReleaseName.parse(DEFAULT_RELEASE)))
        cluster = pool.running([variant])[0].cluster
        node, password = cluster.nodes[0], redaction.new_password()
        node.query(f"CREATE USER {ACCOUNT}@'%' IDENTIFIED BY '{password}'")
        for schema in (GoTPC.schema, SysbenchTPCC.schema):
            node.query(f"GRANT ALL PRIVILEGES ON {schema}.* TO {ACCOUNT}@'%'")
        account = Endpoint(node.host.address, node.port, ACCOUNT, password, nodes=(node.name,), tls=False)
        client = pool.client(variant.release)
        yield Comparison(Setting(cluster, client, variant.release, "quick", stage.tell), account, warehouses, threads)

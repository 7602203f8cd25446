"""Hosts with a root of their own: their paths do not exist on this machine, and their programs do not see ours.

A program runs in a mount namespace in which a private directory lies at ``ROOT``, and in which our cache, our runs and
our checkout are empty but for the trees that were brought. ``opened`` finds out whoever opens a host's path here.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.host import Completed, Host, Process
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache, probes

ROOT = Path("/mnt")  # what every machine has (FHS), and where nothing of ours lies
CHECKOUT = Path(__file__).parents[2]
# $1: the private directory; $2: the directory of the program; then "number=tree" until "--", hidden ones until "--".
ENTER = """\
private=$1 directory=$2; shift 2
mount --make-rprivate / && mount --bind "$private" @ROOT@ && mkdir -p @ROOT@/.brought || exit 99
trees=
while [ "$1" != -- ]; do
  kept=@ROOT@/.brought/${1%%=*}; mkdir -p "$kept"; mount --bind "${1#*=}" "$kept" || exit 99
  trees="$trees $1"; shift
done; shift
while [ "$1" != -- ]; do mount -t tmpfs dbcluster-test "$1" || exit 99; shift; done; shift
for tree in $trees; do
  mkdir -p "${tree#*=}"; mount --bind "@ROOT@/.brought/${tree%%=*}" "${tree#*=}" || exit 99
done
cd "$directory" && exec "$@"
""".replace("@ROOT@", str(ROOT))


def missing() -> str:
    """Why there can be no such hosts here; empty where there can be."""
    if os.geteuid() != 0:
        return "hosts with a root of their own need root: they are mount namespaces"
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    return f"hosts with a root of their own need mount namespaces: {done.stderr.strip()}" if done.returncode else ""


class FarProcess(Process):
    """A program that this machine does not see."""

    pid = 0

    def __init__(self, process: Process) -> None:
        self._process = process

    def status(self) -> int | None:
        """As it was started."""
        return self._process.status()

    def signal(self, number: int) -> None:
        """To its group."""
        self._process.signal(number)

    def cpu_seconds(self) -> float | None:
        """As its host counts."""
        return self._process.cpu_seconds()


class FarHost(Host):
    """A host of another machine, as far as anybody can tell. private: where its ``ROOT`` is here."""

    root = True
    address = "127.0.0.1"

    def __init__(self, name: str, directory: Path, private: Path, files: LocalHost) -> None:
        self.name = name
        self.machine = f"the machine of {private.name}"
        self.directory = str(directory)
        self.brought: list[Path] = []
        self._private = private
        self._files = files
        self.here(self.directory).mkdir(parents=True, exist_ok=True)

    def here(self, path: str | Path) -> Path:
        """Where a path of the host is on this machine."""
        return self._private / Path(path).relative_to(ROOT)

    def _entering(self, command: Sequence[str], directory: str) -> list[str]:
        trees = [f"{number}={tree}" for number, tree in enumerate(self.brought)]
        ours = [path for path in (cache.root(), runs.directory(), CHECKOUT) if path.is_dir()]
        hidden = [str(path) for path in ours if not any(path != other and path.is_relative_to(other) for other in ours)]
        enter = ["unshare", "--mount", "sh", "-c", ENTER, "enter", str(self._private), directory]
        return [*enter, *trees, "--", *hidden, "--", *command]

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """In the host's root."""
        entering = self._entering(command, self.directory)
        return self._files.run(entering, seconds=seconds, environment=environment, text=text)

    def spawn(
        self, command: Sequence[str], *, log: str, directory: str, environment: Mapping[str, str] | None = None
    ) -> FarProcess:
        """In the host's root."""
        entering = self._entering(command, directory)
        own = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(environment or {})}
        here = str(self.here(directory))
        return FarProcess(self._files.spawn(entering, log=str(self.here(log)), directory=here, environment=own))

    def bring(self, tree: Path) -> None:
        """Programs that start from now on see it."""
        if tree not in self.brought:
            self.brought.append(tree)

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Into the host's root."""
        self._files.push(content, str(self.here(path)), mode=mode)

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """From the host's root."""
        return self._files.pull(str(self.here(path)), offset=offset)

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """From this machine into the host's root."""
        self._files.copy_tree(source, str(self.here(target)), durable=durable)

    def take_tree(self, source: str, target: Path) -> None:
        """From the host's root to this machine."""
        shutil.copytree(self.here(source), target, symlinks=True)
        self.remove_tree(source)

    def tree_size(self, path: str) -> int:
        """In the host's root."""
        return cache.size(self.here(path))

    def remove_tree(self, path: str) -> None:
        """In the host's root."""
        self._files.remove_tree(str(self.here(path)))

    def free_bytes(self) -> int:
        """Where the host's root is."""
        return shutil.disk_usage(self._private).free

    def flush_seconds(self) -> float:
        """Where the host's root is."""
        return probes.fsync_seconds(self._private)

    def cores(self) -> float:
        """More than this machine has."""
        return 99.0

    def cpu_seconds(self) -> float | None:
        """Of its ended commands."""
        return self._files.cpu_seconds()

    def usage(self) -> Mapping[str, float]:
        """The counts of a machine: those of this one, of which there are several so."""
        times = psutil.cpu_times()
        return {"cpu_user": times.user, "cpu_system": times.system, "cpu_iowait": times.iowait, "cpu_idle": times.idle}

    def port(self, usual: int) -> int:
        """A free one: all hosts share an address."""
        return self._files.port(usual)


class FarProvisioner(Provisioner):
    """Each node is a host of a machine of its own; data of servers are made on this machine."""

    offers = frozenset({"root"})
    disk = "a disk elsewhere"
    environment: Mapping[str, str] = {"hosts": "elsewhere"}

    def __init__(self) -> None:
        self._run = LocalRun()
        self.run_id = self._run.run_id
        self._numbers = itertools.count(1)
        self.hosts: list[FarHost] = []

    def acquire(self, spec: ClusterSpec) -> list[FarHost]:
        """One for each node."""
        path = self._run.cluster_directory(spec)
        made = []
        for number in range(1, spec.nodes + 1):
            private = path / f"private-{next(self._numbers)}"
            name, files = f"node{number}", self._run.host("files", private)
            made.append(FarHost(name, ROOT / "dbcluster" / path.name / name, private, files))
        self.hosts += made
        return made

    def workshop(self, spec: ClusterSpec) -> LocalHost:
        """A host of this machine."""
        return self._run.host("node1", self._run.cluster_directory(spec) / "node1")

    def beside(self, host: Host) -> LocalHost:
        """A host of this machine, which the others reach at their common address."""
        return self._run.host(host.name, self._run.directory / f"beside-{next(self._numbers)}")

    def give_back(self, hosts: Sequence[Host]) -> None:
        """Remove their roots."""
        for host in hosts:
            shutil.rmtree(host._private if isinstance(host, FarHost) else host.directory, ignore_errors=True)

    def close(self) -> None:
        """End the run."""
        self._run.close()


_recording: list[list[str]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _recording and event.partition(".")[0] in ("open", "os", "shutil", "glob", "subprocess"):
        inside = f"{ROOT}/dbcluster"
        given = [part for part in arguments if isinstance(part, str | bytes | os.PathLike)]
        texts = [os.fsdecode(part) for part in given]
        _recording[-1] += [f"{event} {text}" for text in texts if text.startswith(inside)]


@contextlib.contextmanager
def opened() -> Iterator[list[str]]:
    """What this process does with paths of the hosts meanwhile: an audit event and the path, one line each."""
    if not getattr(_hear, "added", False):
        sys.addaudithook(_hear)
        _hear.added = True  # type: ignore[attr-defined]
    _recording.append([])
    try:
        yield _recording[-1]
    finally:
        _recording.pop()

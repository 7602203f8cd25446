"""Machine: one computer that is reached over ssh, and what the hosts on it share: programs, data to copy, ports."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import random
import re
import shlex
import shutil
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.session import Session
from pytest_dbcluster.releases import shims
from pytest_dbcluster.system.ports import HIGHEST, LOWEST

COMPILED = "__pycache__"  # not sent: it changes without its sources
# Around a path: nothing that would go on with it; an option of one letter, as in -L/path, may stand before it.
BEFORE, AFTER = r"((?<![\w.+/-])(?:-[A-Za-z])?)", r"(?![\w.+-])"
NEEDED = ("name", "user", "kernel", "cpus", "memory", "disk", "clock", "root", "ephemeral")  # beside the architecture
SPARE = 2**30  # bytes that a disk which can grow has free for servers: their logs and temporary files
CLOCK = re.compile(r"\d+(\.\d+)?")  # some programs `date` know no parts of a second, and print their format
PROGRAMS = "programs"  # in the directory of a user: what was brought, for later runs too


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a machine says of itself."""

    name: str
    user: int
    architecture: str
    kernel: str
    cpu: str
    cpus: int
    memory: int
    """Bytes."""

    disk: str
    clocksource: str
    clock_ahead: float
    """Seconds that its clock is ahead of ours."""

    zstd: bool
    sparse: bool
    """Whether its tar knows holes in files, as GNU's does."""

    root: str
    """Our directory there."""

    address: str
    """The one at which ssh arrived, which its peers use."""

    ephemeral: tuple[int, int]
    """The first and last port that its kernel assigns by itself."""

    @classmethod
    def read(cls, text: str, target: str, ours: float) -> Facts:
        """The facts from the lines of ``remote_programs.FACTS``. ours: our clock. Raises ProvisionError, Unsupported.

        A machine of another architecture or system is Unsupported: the releases have programs for this machine's.
        """
        known = {name: value.strip() for name, _, value in (line.partition(" ") for line in text.splitlines())}
        here = shims.machine()
        if (known.get("system"), known.get("architecture")) != ("Linux", here):
            raise Unsupported(
                f"the machine {target} is {known.get('system')} on {known.get('architecture')}; the programs of "
                f"releases are those of this machine: Linux on {here}"
            )
        if lacking := [name for name in NEEDED if not known.get(name)]:
            raise ProvisionError(
                f"the machine {target} does not say its {', '.join(lacking)}: it needs /proc and the usual programs"
            )
        address = known.get("address", "").split()
        if len(address) < 3:
            raise ProvisionError(f"the machine {target} does not say at which address ssh reached it (SSH_CONNECTION)")
        low, high = known["ephemeral"].split()
        return cls(
            name=known["name"],
            user=int(known["user"]),
            architecture=known["architecture"],
            kernel=known["kernel"],
            cpu=known.get("cpu", ""),
            cpus=int(known["cpus"]),
            memory=int(known["memory"]) * 1024,
            disk=known["disk"],
            clocksource=known.get("clocksource", ""),
            clock_ahead=float(CLOCK.match(known["clock"])[0]) - ours,  # type: ignore[index]
            zstd=bool(known.get("zstd")),
            sparse="GNU" in known.get("tar", ""),
            root=known["root"],
            address=address[2],
            ephemeral=(int(low), int(high)),
        )


class Machine:
    """A machine of the run. ``session``: our own connection to it, which holds the machine's lock.

    Hosts on it have sessions of their own. Programs and data that it was sent serve all hosts. ``address``: at which
    other machines reach it, empty for that at which ssh does.
    """

    def __init__(self, session: Session, address: str = "") -> None:
        self.target = session.target
        self.session = session
        self._sending = threading.Lock()
        self._brought: dict[str, str] = {}  # path here -> path there
        self._ports: set[int] = set()
        self.grow: Callable[[], None] | None = None  # makes the file system of the data larger, once
        began = time.time()
        text = session.ask(remote_programs.FACTS)
        facts = Facts.read(text, self.target, (began + time.time()) / 2)
        self.facts = dataclasses.replace(facts, address=address or facts.address)

    @property
    def directory(self) -> str:
        """The directory of our own session, which goes at the end of the run."""
        return f"{self.facts.root}/{self.session.name}"

    def there(self, text: str) -> str:
        """The same text with the paths that brought trees have on the machine.

        A longer path that has one of them in it is another one.
        """
        for here, there in self._brought.items():
            if here in text:
                text = re.sub(BEFORE + re.escape(here) + AFTER, rf"\g<1>{there}", text)
        return text

    def place(self, tree: Path) -> str:
        """The path on the machine of a tree of programs, which stays there for later runs."""
        return f"{self.facts.root}/{PROGRAMS}/{identity(tree)}"

    def knows(self, tree: Path) -> bool:
        """Whether this run knows that the machine has a tree, or one that it is in."""
        return any(str(tree) == known or str(tree).startswith(f"{known}/") for known in self._brought)

    def has(self, tree: Path) -> bool:
        """Whether the machine has a tree, from this run or from an earlier one. Raises ProvisionError."""
        if not self.knows(tree) and self._has(place := self.place(tree)):
            self._brought[str(tree)] = place
        return self.knows(tree)

    def send(self, tree: Path) -> None:
        """Send a tree of programs. Raises ProvisionError."""
        place = self.place(tree)
        self._send(tree, place)
        self._brought[str(tree)] = place

    def data(self, tree: Path) -> str:
        """The path of a copy of a directory of this machine, which hosts copy from; it goes at the end of the run."""
        with self._sending:
            place = f"{self.directory}/data/{identity(tree)}"
            if not self._has(place):
                self._send(tree, place)
            return place

    def _has(self, place: str) -> bool:
        return self.session.ask(f"[ -e {shlex.quote(place)} ] && echo yes; true").strip() == "yes"

    def _send(self, tree: Path, place: str) -> None:
        """Send a tree to a place that appears when it is complete."""
        part = shlex.quote(f"{place}.part-{self.session.name}")
        pack, unpack = ("zstd -q -1 -T0", "zstd -q -d") if self.facts.zstd and shutil.which("zstd") else ("cat", "cat")
        name = "." if tree.is_dir() else shlex.quote(tree.name)
        source = shlex.quote(str(tree if tree.is_dir() else tree.parent))
        target = part if tree.is_dir() else f"{part}/{shlex.quote(tree.name)}"
        script = (
            f"umask 077; mkdir -p {part} && {unpack} | tar -C {part} --no-same-owner -xf - && "
            f"mv -T {target} {shlex.quote(place)} && rm -rf {part}"
        )
        holes = "--sparse " if self.facts.sparse else ""
        try:
            self.session.send(f"tar -C {source} {holes}--exclude={COMPILED} -cf - {name} | {pack}", script)
        except ProvisionError as error:
            with contextlib.suppress(ProvisionError):
                self.session.ask(f"rm -rf {part}")
            raise ProvisionError(
                f"cannot send {tree} to {place} on {self.target}: {error}; there is {self._room()}"
            ) from None

    def _room(self) -> str:
        with contextlib.suppress(ProvisionError):
            return f"{self.free_bytes() / 2**20:.0f} MiB free"
        return "no answer any more"

    def free_bytes(self) -> int:
        """The space that is free where our directory lies, in bytes. Raises ProvisionError."""
        return 1024 * int(self.session.ask(FREE))

    def make_room(self, needed: int) -> None:
        """Have this many bytes free, and some to spare, if the disk can grow. Raises ProvisionError."""
        if self.grow is not None and self.free_bytes() < needed + SPARE:
            grow, self.grow = self.grow, None
            grow()

    def available_memory(self) -> int:
        """The memory that programs could have now, in bytes. Raises ProvisionError."""
        return 1024 * int(self.session.ask(r"sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo"))

    def port(self, draws: random.Random | None = None) -> int:
        """A port that no program of the machine listens on now, and that it was not asked for before.

        draws: of which it is the first such port; None draws at random.
        """
        draws = draws or random.Random()
        low, high = self.facts.ephemeral
        text = self.session.ask("cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; true")
        taken = {int(port, 16) for port in re.findall(r": [0-9A-F]+:([0-9A-F]{4}) ", text)}
        with self._sending:
            while True:
                port = draws.randint(LOWEST, HIGHEST)
                if not low <= port <= high and port not in taken and port not in self._ports:
                    self._ports.add(port)
                    return port


# In the agent's directory.
FREE = "df -P -k . | awk 'NR == 2 { print $4 }'"  # KiB


def identity(tree: Path) -> str:
    """A name for a tree as it is now: its own, with a digest of what its files are called and what ``_state`` says."""
    digest = hashlib.sha256(str(tree).encode())
    for path in (tree, *sorted(tree.rglob("*"))):
        if COMPILED not in path.parts:
            digest.update(f"{path.relative_to(tree)}:{_state(path)}\n".encode())
    return f"{re.sub('[^A-Za-z0-9_.-]', '-', tree.name)}-{digest.hexdigest()[:12]}"


def _state(path: Path) -> str:
    """Where a link leads, the permissions of a directory, and of a file its size and its time of change too."""
    state = path.lstat()
    if stat.S_ISLNK(state.st_mode):
        return str(path.readlink())
    what = f":{state.st_size}:{state.st_mtime_ns}" if stat.S_ISREG(state.st_mode) else ""
    return f"{state.st_mode:o}{what}"

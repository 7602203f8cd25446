"""Machine: one computer that we reach over ssh. Its hosts share programs, data to copy, and ports."""

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

COMPILED = "__pycache__"  # not sent: it can change while its sources do not
# Around a path: no characters that would continue it, except a one-letter option before it, as in -L/path.
BEFORE, AFTER = r"((?<![\w.+/-])(?:-[A-Za-z])?)", r"(?![\w.+-])"
NEEDED = ("name", "user", "kernel", "cpus", "memory", "disk", "clock", "root", "ephemeral")  # beside the architecture
SPARE = 2**30  # free bytes for the servers' logs and temporary files on a disk that can grow
CLOCK = re.compile(r"\d+(\.\d+)?")  # some `date` programs do not know fractions of a second, and print the format
PROGRAMS = "programs"  # in the directory of a user: the sent programs, also for later runs


@dataclasses.dataclass(frozen=True)
class Facts:
    """The properties of a machine."""

    name: str
    """The host name of the machine."""

    user: int
    """Our user id on the machine."""

    architecture: str
    """The architecture, as ``uname -m`` prints it."""

    kernel: str
    """The release of the kernel, as ``uname -r`` prints it."""

    cpu: str
    """The model of the CPU; empty if the kernel does not name it."""

    cpus: int
    """Number of CPUs."""

    memory: int
    """Size of the memory, in bytes."""

    disk: str
    """The file system of our directory and its device: ``ext2/ext3 on /dev/sda1``."""

    clocksource: str
    """The clock source of the kernel; empty if unknown."""

    clock_ahead: float
    """Seconds by which its clock is ahead of ours."""

    zstd: bool
    """Whether it has the program zstd."""

    sparse: bool
    """Whether its tar supports sparse files, as GNU tar does."""

    root: str
    """Our directory on the machine."""

    address: str
    """The address at which ssh reached it, which its peers use too."""

    ephemeral: tuple[int, int]
    """The first and last port that its kernel assigns itself."""

    @classmethod
    def read(cls, text: str, target: str, ours: float) -> Facts:
        """The facts from the lines of ``remote_programs.FACTS``. ours: our clock. Raises ProvisionError, Unsupported.

        A machine with another architecture or system is Unsupported, because releases have programs for this machine.
        """
        known = {name: value.strip() for name, _, value in (line.partition(" ") for line in text.splitlines())}
        here = shims.machine()
        if (known.get("system"), known.get("architecture")) != ("Linux", here):
            raise Unsupported(
                f"the machine {target} is {known.get('system')} on {known.get('architecture')}; releases have "
                f"programs for this machine: Linux on {here}"
            )
        if lacking := [name for name in NEEDED if not known.get(name)]:
            raise ProvisionError(
                f"the machine {target} does not report its {', '.join(lacking)}: it needs /proc and the usual programs"
            )
        address = known.get("address", "").split()
        if len(address) < 3:
            raise ProvisionError(
                f"the machine {target} does not report the address at which ssh reached it (SSH_CONNECTION)"
            )
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

    Its hosts have separate sessions, and share programs and data. ``address``: at which other machines reach it; empty
    if they use that of ssh.
    """

    def __init__(self, session: Session, address: str = "") -> None:
        self.target = session.target
        self.session = session
        self._sending = threading.Lock()
        self._brought: dict[str, str] = {}  # path here -> path there
        self._ports: set[int] = set()
        self.grow: Callable[[], None] | None = None  # enlarges the file system of the data, once
        began = time.time()
        text = session.ask(remote_programs.FACTS)
        facts = Facts.read(text, self.target, (began + time.time()) / 2)
        self.facts = dataclasses.replace(facts, address=address or facts.address)
        if ":" in self.facts.address:
            raise Unsupported(
                f"the machine {session.target} has the IPv6 address {self.facts.address}, and clusters use IPv4: write "
                "AddressFamily inet into the ssh configuration, or name another address: MACHINE=IPV4_ADDRESS"
            )

    @property
    def directory(self) -> str:
        """The directory of our session, which is removed at the end of the run."""
        return f"{self.facts.root}/{self.session.name}"

    def there(self, text: str) -> str:
        """The same text, with paths of sent trees replaced by their paths on the machine.

        A longer path that only contains one of them is not replaced.
        """
        for here, there in self._brought.items():
            if here in text:
                text = re.sub(BEFORE + re.escape(here) + AFTER, rf"\g<1>{there}", text)
        return text

    def place(self, tree: Path) -> str:
        """The path of a tree of programs on the machine; the tree stays there for later runs."""
        return f"{self.facts.root}/{PROGRAMS}/{identity(tree)}"

    def knows(self, tree: Path) -> bool:
        """Whether this run knows that the machine has a tree or a tree that contains it."""
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
        """The path of a copy of a local directory, for hosts to copy from; the run's end removes it."""
        with self._sending:
            place = f"{self.directory}/data/{identity(tree)}"
            if not self._has(place):
                self._send(tree, place)
            return place

    def _has(self, place: str) -> bool:
        return self.session.ask(f"[ -e {shlex.quote(place)} ] && echo yes; true").strip() == "yes"

    def _send(self, tree: Path, place: str) -> None:
        """Send a tree to a place, where it appears when it is complete."""
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
                f"cannot send {tree} to {place} on {self.target}: {error}; disk of the machine: {self._room()}"
            ) from None

    def _room(self) -> str:
        with contextlib.suppress(ProvisionError):
            return f"{self.free_bytes() / 2**20:.0f} MiB free"
        return "no answer"

    def free_bytes(self) -> int:
        """The free space for our directory, in bytes. Raises ProvisionError."""
        return 1024 * int(self.session.ask(FREE))

    def make_room(self, needed: int) -> None:
        """If the disk can grow, make this many bytes free, and SPARE more. Raises ProvisionError."""
        if self.grow is not None and self.free_bytes() < needed + SPARE:
            grow, self.grow = self.grow, None
            grow()

    def available_memory(self) -> int:
        """The available memory, in bytes. Raises ProvisionError."""
        return 1024 * int(self.session.ask(r"sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo"))

    def port(self, draws: random.Random | None = None) -> int:
        """A port that no program of the machine listens on, and that no earlier call returned.

        draws: the random generator of candidates; None for a random one.
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
    """A name for the current state of a tree: its name, with a digest of the names and states of its files."""
    digest = hashlib.sha256(str(tree).encode())
    for path in (tree, *sorted(tree.rglob("*"))):
        if COMPILED not in path.parts:
            digest.update(f"{path.relative_to(tree)}:{_state(path)}\n".encode())
    return f"{re.sub('[^A-Za-z0-9_.-]', '-', tree.name)}-{digest.hexdigest()[:12]}"


def _state(path: Path) -> str:
    """The target of a link, the permissions of a directory, or permissions, size and time of change of a file."""
    state = path.lstat()
    if stat.S_ISLNK(state.st_mode):
        return str(path.readlink())
    what = f":{state.st_size}:{state.st_mtime_ns}" if stat.S_ISREG(state.st_mode) else ""
    return f"{state.st_mode:o}{what}"

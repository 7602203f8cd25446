"""Stand-in hosts: machines with a real ssh server that are namespaces of this one, for tests and for trying ssh out.

Each has a root directory of its own and sees no file, process, user or network of this machine. All are on one network
with this machine; with ``private`` they have a second one that this machine does not reach, and reach each other there
alone. They end with the process that made them, however that ends.

    python -m tests.support.stand_ins up --hosts 3 --load 1
    python -m tests.support.stand_ins run --hosts 3 -- pytest suites/galera -k flush --db-provisioner ssh
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import ipaddress
import itertools
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.errors import DBClusterError, ProvisionError
from pytest_dbcluster.hosts import subnets
from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.network.namespaces import Namespace
from pytest_dbcluster.releases import fetched, find, shims
from pytest_dbcluster.releases.catalogue import STAND_IN_SYSTEM
from pytest_dbcluster.releases.release import Release
from tests.support import slow_line, stand_in_init

SECONDS = 20.0  # until a host is there, and for a command on it
LOAD = "load"
PLAIN = "plain"  # a user of each host who is not root
FIRST_ID, SLOTS = 2**20, 60_000  # user ids of this machine that are root on hosts: one in 65536 of them
BRIDGES = ("control", "private")
HOST_KEY = "etc/ssh/ssh_host_ed25519_key"
DIRECTORIES = ("dev", "home/plain/.ssh", "opt", "proc", "root/.ssh", "run", "srv", "sys", "tmp", "usr", "var/empty",
               "var/lib", "var/log", "var/tmp")  # fmt: skip
FILES = {
    "etc/passwd": f"""\
root:x:0:0:root:/root:/bin/bash
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin
{PLAIN}:x:1000:1000::/home/{PLAIN}:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
""",
    "etc/group": f"root:x:0:\ntty:x:5:\n{PLAIN}:x:1000:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/shells": "/bin/sh\n/bin/bash\n",
    "etc/profile": "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nexport PATH\n",
    "etc/ssh/sshd_config": f"""\
Include /etc/ssh/sshd_config.d/*.conf
HostKey /{HOST_KEY}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
# The default costs a tenth of a second of CPU more for each connection.
KexAlgorithms curve25519-sha256
Subsystem sftp /usr/lib/openssh/sftp-server
""",
}


@functools.cache
def missing() -> str:
    """Why there can be no stand-in hosts here; empty when there can."""
    if not user_namespace.root():
        return "stand-in hosts need root of this machine"
    done = subprocess.run(["unshare", "--user", "--pid", "--fork", "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"stand-in hosts need user namespaces: {done.stderr.strip()}"
    if not shutil.which("ssh"):
        return "there is no program ssh here (package openssh-client; make tools installs it)"
    if fetched.lookup(STAND_IN_SYSTEM, "") is None:
        return f"the system of stand-in hosts is not in the cache: dbcluster fetch {STAND_IN_SYSTEM}"
    return ""


@dataclasses.dataclass
class StandIn:
    """One host. address: where this machine reaches it. private_address: where the other hosts do.

    root: its root directory, as seen from here. pid: its first process, as seen from here. hidden: it has no cable to
    the network of this machine, which reaches it through another host alone.
    """

    name: str
    address: str
    private_address: str
    root: Path
    pid: int
    first_id: int
    client: Path  # the configuration of ssh
    system: Release
    hub: Namespace
    hidden: bool = False

    def ssh(self, *words: str, config: Path | None = None, user: str = "root") -> subprocess.CompletedProcess[str]:
        """What ``ssh`` says and returns for a command line on the host. config: another configuration file."""
        command = ["ssh", "-F", str(config or self.client), "-o", "BatchMode=yes", "-l", user, self.name, *words]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=3 * SECONDS
        )

    @property
    def host_key(self) -> str:
        """The public key of the host, as a file of known hosts has it after the name."""
        return " ".join((self.root / f"{HOST_KEY}.pub").read_text().split()[:2])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the host's key, as ssh prints it: ``SHA256:...``."""
        return run(self.system.program("ssh-keygen"), "-l", "-f", self.root / f"{HOST_KEY}.pub").split()[1]

    def change_host_key(self) -> None:
        """Give the host another key, as after a new installation. Nobody's file of known hosts has it."""
        for suffix in ("", ".pub"):
            (self.root / f"{HOST_KEY}{suffix}").unlink()
        self._make_host_key()
        self.reload()

    def configure(self, *lines: str) -> None:
        """Put these lines before those of the server's configuration, such as ``MaxSessions 1``."""
        self.write("etc/ssh/sshd_config.d/test.conf", "".join(f"{line}\n" for line in lines))
        self.reload()

    def reload(self) -> None:
        """Let the server read its files again; connections stay. Returns when it has done so and shows its key."""
        log, listening = self.root / "var/log/sshd.log", "Server listening on 0.0.0.0"
        before = log.read_text().count(listening)
        servers = [one for one in psutil.Process(self.pid).children() if _is_server(one)]
        # Others are what is left of a connection whose process has ended.
        min(servers, key=psutil.Process.create_time).send_signal(signal.SIGHUP)

        def problems() -> list[str]:
            again = log.read_text().count(listening) > before
            return self.problems() if again else ["it has not begun again"]

        wait.until(problems, f"the ssh server of {self.name}", seconds=SECONDS)

    def problems(self) -> list[str]:
        """Why nobody can log in yet; empty when the server shows its present key."""
        shown = subprocess.run(
            [self.system.program("ssh-keyscan"), "-T", "2", "-t", "ed25519", self.address],
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
        return [] if self.host_key in shown.stdout else [f"its key is not shown: {shown.stderr.strip()[-200:]}"]

    def write(self, path: str, text: str, *, mode: int = 0o644, owner: int = 0) -> None:
        """Write a file of the host, which belongs to this user of the host."""
        file = self.root / path
        file.write_text(text)
        file.chmod(mode)
        os.chown(file, self.first_id + owner, self.first_id + owner)

    def cut(self) -> None:
        """Drop every packet from and to the host without a word, as a cable far away that is pulled."""
        self.hub.batch("ip", [f"link set dev {name} nomaster" for name in self.cables])

    def heal(self) -> None:
        """Connect the host again."""
        self.hub.batch("ip", [f"link set dev {name} master {bridge}" for name, (bridge, _) in self.cables.items()])
        if len(self.cables) > 1:  # the first network leads to this machine alone
            self.hub.batch("ip", [f"link set dev {self.name} type bridge_slave isolated on"])

    @property
    def cables(self) -> dict[str, tuple[str, str]]:
        """The host's cables, by their ends in the hub: the bridge, and the host's address."""
        control, private = self.name, f"{self.name}-p"
        found = {control: (BRIDGES[0], self.address), private: (BRIDGES[1], self.private_address)}
        if self.hidden:
            del found[control]
        elif self.private_address == self.address:
            del found[private]
        return found

    def processes(self) -> dict[int, str]:
        """The command lines of what runs on the host, without its first process; by process id of this machine."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state = dict(
                    line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line
                )
                ours = self.first_id <= int(state["Uid"].split()[0]) < self.first_id + stand_in_init.IDS
                if ours and len(state["NSpid"].split()) > 1 and int(process.name) != self.pid:
                    words = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                    found[int(process.name)] = shlex.join(word.decode(errors="replace") for word in words)
        return found

    def kill(self) -> None:
        """End the host at once, as when it loses its power."""
        os.kill(self.pid, signal.SIGKILL)

    def _make_host_key(self) -> None:
        file = self.root / HOST_KEY
        make_key(self.system, file)
        for path in (file, file.with_name(f"{file.name}.pub")):
            os.chown(path, self.first_id, self.first_id)


def _is_server(process: psutil.Process) -> bool:
    try:
        return process.name() == "sshd"
    except psutil.NoSuchProcess:  # what was left of a connection, until now
        return False


class StandIns:
    """Hosts ``host1`` to ``hostN``, and ``load``, or ``load1`` and more. They end with this process.

    directory: where the client's files are: ``config`` for ``ssh -F``, ``key``, ``known_hosts``; without one they are
    removed at the end too. round_trip: seconds that ssh takes longer for a question and its answer; the hosts stay near
    each other. Raises ProvisionError.
    """

    def __init__(
        self,
        directory: Path | None = None,
        count: int = 1,
        *,
        load: int = 0,
        private: bool = False,
        round_trip: float = 0.0,
    ) -> None:
        if reason := missing():
            raise ProvisionError(reason)
        self._run = LocalRun()
        self.run_id = self._run.run_id
        self.servers = [f"host{number}" for number in range(1, count + 1)]
        self.loads = [LOAD] if load == 1 else [f"{LOAD}{number}" for number in range(1, load + 1)]
        self.hosts: dict[str, StandIn] = {}
        self._round_trip = round_trip
        try:
            assert self._run.client
            self.directory = directory or self._run.directory / "client"
            self.directory.mkdir(parents=True, exist_ok=True)
            self._begin(private)
        except BaseException:
            self.close()
            raise

    @property
    def config(self) -> Path:
        """The configuration file of ssh: ``ssh -F FILE host1``."""
        return self.directory / "config"

    @property
    def options(self) -> list[str]:
        """The options of a run of pytest on these hosts, with their private addresses where they have such."""
        private = {host.name: f"={host.private_address}" for host in self if host.private_address != host.address}
        kinds = [("--db-host", self.servers), ("--db-load-host", self.loads)]
        named = [word for option, names in kinds for name in names for word in (option, name + private.get(name, ""))]
        return [*named, "--db-ssh-config", str(self.config)]

    def __getitem__(self, name: str) -> StandIn:
        return self.hosts[name]

    def __iter__(self) -> Iterator[StandIn]:
        return iter(self.hosts.values())

    def __enter__(self) -> StandIns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the hosts and remove everything of them. A second call does nothing."""
        self._run.close()

    def _begin(self, private: bool) -> None:
        self._system = find.find(STAND_IN_SYSTEM)
        self._files = self._run.host("hub", self._run.directory / "hub")
        self._hub = Namespace(self._files, "hub")
        subnet = subnets.free_subnet()
        control, inner = subnet.subnets()
        self._link(subnet, private)
        make_key(self._system, self.directory / "key")
        self._subnets = subnet, control, inner if private else control
        self._first_ids = FIRST_ID + secrets.randbelow(SLOTS) * stand_in_init.IDS
        self._numbers = itertools.count()
        self._adding = threading.Lock()
        hosts = [self._new(name) for name in (*self.servers, *self.loads)]
        for host in hosts:
            self._connect(host, control.prefixlen)
        self.write_config()
        for host in hosts:
            wait.until(host.problems, f"the ssh server of {host.name}", seconds=SECONDS)

    def reserve(self) -> tuple[int, str, str]:
        """The number of a host that will be added, its address, and its private address."""
        with self._adding:
            number = next(self._numbers)
        _, control, inner = self._subnets
        position = number + 10
        assert position < control.num_addresses
        return number, *(str(one.network_address + position) for one in (control, inner))

    def add(
        self, name: str, place: tuple[int, str, str], change: Callable[[StandIn], None], *, hidden: bool = False
    ) -> StandIn:
        """Add a host while others run. place: of ``reserve``. change: changes its files before it begins."""
        host = self._new(name, place, change)
        host.hidden = hidden
        self._connect(host, self._subnets[1].prefixlen)
        return host

    def _new(
        self,
        name: str,
        place: tuple[int, str, str] | None = None,
        change: Callable[[StandIn], None] = lambda _: None,
    ) -> StandIn:
        number, *addresses = place or self.reserve()
        self.hosts[name] = self._host(name, addresses, self._first_ids + number * stand_in_init.IDS, change)
        return self.hosts[name]

    def _link(self, subnet: ipaddress.IPv4Network, private: bool) -> None:
        """Make the bridges, and a cable from this machine to the first one, where it looks for both networks."""
        ours = f"st{self.run_id}"
        self._hub.batch(
            "ip",
            [
                "link set dev lo up",
                *(f"link add {name} type bridge" for name in BRIDGES[: 1 + private]),
                *(f"link set dev {name} addrgenmode none up" for name in BRIDGES[: 1 + private]),
                f"link add machine type veth peer name {ours} netns {os.getpid()}",
                f"link set dev machine master {BRIDGES[0]} addrgenmode none up",
            ],
        )
        up = [f"address add {subnet[1]}/{subnet.prefixlen} dev {ours}", f"link set dev {ours} addrgenmode none up"]
        self._hub.batch_here("ip", up)

    def _host(self, name: str, addresses: Sequence[str], first_id: int, change: Callable[[StandIn], None]) -> StandIn:
        """Start a host. Its interfaces come later."""
        place = self._files.directory  # of logs
        root, file = self._run.directory / name / "root", self._run.directory / name / "pid"
        base = self._system.bin.parent / shims.ROOT
        host = StandIn(name, *addresses, root, 0, first_id, self.config, self._system, self._hub)
        self._furnish(host, base)
        change(host)
        command = [sys.executable, "-I", stand_in_init.__file__, root, base / "usr", name, first_id, file]
        log = f"{place}/{name}.log"
        process = self._files.spawn([str(word) for word in command], log=log, directory=place)

        def problems() -> list[str]:
            if (status := process.status()) is not None:
                raise ProvisionError(f"{name} ended with {status}: {Path(log).read_text().strip()[-1000:]}")
            return [] if file.exists() and file.read_text().endswith("\n") else ["its first process has not begun"]

        wait.until(problems, f"the start of {name}", seconds=SECONDS, poll=0.005)
        host.pid = int(file.read_text())
        return host

    def _furnish(self, host: StandIn, base: Path) -> None:
        """Make the root directory of a host, whose files belong to its users."""
        host.root.mkdir(parents=True)
        shutil.copytree(base / "etc", host.root / "etc", symlinks=True)
        for link in (path for path in base.iterdir() if path.is_symlink()):
            (host.root / link.name).symlink_to(link.readlink())
        for name in DIRECTORIES:
            (host.root / name).mkdir(parents=True)
        texts = {
            **FILES,
            "etc/hostname": f"{host.name}\n",
            "etc/hosts": f"127.0.0.1 localhost\n127.0.1.1 {host.name}\n",
        }
        for name, text in texts.items():
            (host.root / name).write_text(text)
        make_key(host.system, host.root / HOST_KEY)
        for home in ("root", f"home/{PLAIN}"):
            shutil.copytree(base / "etc/skel", host.root / home, dirs_exist_ok=True)
            shutil.copy(self.directory / "key.pub", host.root / home / ".ssh/authorized_keys")
            (host.root / home).chmod(0o700)
        for name in ("tmp", "var/tmp"):
            (host.root / name).chmod(0o1777)
        self._hand_over(host)

    @staticmethod
    def _hand_over(host: StandIn) -> None:
        home = host.root / "home" / PLAIN
        for parent, directories, files in os.walk(host.root):
            for path in (Path(parent), *(Path(parent, name) for name in (*directories, *files))):
                user = host.first_id + 1000 * path.is_relative_to(home)
                os.lchown(path, user, user)

    def _connect(self, host: StandIn, size: int) -> None:
        """Give a host its interfaces and addresses."""
        inside = Namespace(self._files, host.name, of=host.pid)
        inside.set("ipv4/conf/all/arp_ignore", "1")  # an address is that of one network, not of the whole host
        inside.batch("ip", ["link set dev lo up"])
        for number, (port, (_, address)) in enumerate(host.cables.items()):
            cable = f"link add {port} type veth peer name eth{number} netns {host.pid}"
            self._hub.batch("ip", [cable, f"link set dev {port} addrgenmode none up"])
            inside.batch("ip", [f"address add {address}/{size} dev eth{number}", f"link set dev eth{number} up"])
        host.heal()

    def write_config(self) -> None:
        """Write ssh's configuration, and the keys of the hosts as they are now."""
        known = self.directory / "known_hosts"
        known.write_text("".join(f"{host.name},{host.address} {host.host_key}\n" for host in self))
        key, way = self.directory / "key", self._round_trip
        self.config.write_text("".join(client_config(host, key, known, way) for host in self))


def client_config(host: StandIn, key: Path, known_hosts: Path, round_trip: float = 0.0) -> str:
    """What ssh is told about a host. round_trip: seconds there and back, beside those that it takes anyway."""
    lines = {
        "HostName": host.address,
        "Port": "22",
        "User": "root",
        "IdentityFile": key,
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": known_hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
    }
    if round_trip:
        line = [sys.executable, "-I", slow_line.__file__, "%h", "%p", str(round_trip / 2)]
        lines["ProxyCommand"] = shlex.join(line)
    return f"Host {host.name}\n" + "".join(f"    {name} {value}\n" for name, value in lines.items())


def make_key(system: Release, file: Path) -> None:
    """Make a key of ssh in this file, and its public half beside it. Raises ProvisionError."""
    file.unlink(missing_ok=True)
    command = [system.program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", file.name, "-f", file]
    run(*command)


def run(*command: str | Path) -> str:
    """What a command prints. Raises ProvisionError with what it said."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode:
        raise ProvisionError(f"{shlex.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.stand_ins", description="Hosts to try ssh out.")
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="hold hosts until Ctrl-C, and print the options of a run on them")
    up.set_defaults(command=[])
    run = commands.add_parser("run", help="run a command, with these options after its own, and end the hosts")
    for command in (up, run):
        command.add_argument("--hosts", type=int, default=3, metavar="N", help="how many (default: 3)")
        command.add_argument("--load", type=int, default=1, metavar="N", help="how many for the load (default: 1)")
        command.add_argument("--private", action="store_true", help="with a network that this machine does not reach")
        command.add_argument("--round-trip", type=float, default=0, metavar="MS", help="of ssh, in ms (default: 0)")
    run.add_argument("command", nargs="+", metavar="COMMAND")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Hold hosts until Ctrl-C, or until a command has ended, whose status it returns; 2 where there can be none."""
    given = arguments(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        how = {"load": given.load, "private": given.private, "round_trip": given.round_trip / 1000}
        with StandIns(count=given.hosts, **how) as hosts:
            if given.command:
                return subprocess.run([*given.command, *hosts.options], check=False).returncode
            print(shlex.join(hosts.options), flush=True)
            print(
                f"Ctrl-C ends them. Log in with: ssh -F {hosts.config} {hosts.servers[0]}", file=sys.stderr, flush=True
            )
            signal.pause()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except DBClusterError as error:
        print(f"stand_ins: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

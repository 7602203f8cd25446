"""Programs for remote machines: over a slow connection we send each tree once, to one machine, which serves the others.

That machine packs the tree and listens for the others. They check the packed file with a digest that we got over ssh.
If no program of the machine can listen, or over a fast connection, each machine gets the tree from us.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioners.ssh.machine import Machine

SLOW_SECONDS = 6.0  # if sending a tree took longer, machines copy it from each other; a local network is faster
SERVE_SECONDS = 600  # after these seconds a machine stops listening
PACK_SECONDS = 600.0

# $1: the file, $2: the address, $3: the port, $4: seconds. It sends the file on each connection.
_SERVE = r"""
socat=$(command -v socat) || socat=$(ls -d {programs}/*/bin/socat 2>/dev/null | head -n 1)
if [ -n "$socat" ]; then
    exec timeout "$4" "$socat" -U "TCP-LISTEN:$3,bind=$2,reuseaddr,fork" "FILE:$1,rdonly"
fi
exec timeout "$4" python3 -c '
import socket, sys
with socket.create_server((sys.argv[2], int(sys.argv[3]))) as server:
    while True:
        with server.accept()[0] as peer, open(sys.argv[1], "rb") as file:
            while part := file.read(1 << 20):
                peer.sendall(part)
' "$1" "$2" "$3"
"""
_FETCH = r"""
umask 077
part={part}
trap 'rm -rf "$part" "$part.tree"' EXIT
mkdir -p "$part.tree" || exit
tries=0
until bash -c 'cat </dev/tcp/{address}/{port}' >"$part" 2>/dev/null && [ -s "$part" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || {{ echo "no answer from {address}:{port}" >&2; exit 1; }}
    sleep 0.1
done
echo "{digest}  $part" | sha256sum -c - >/dev/null || exit
tar -C "$part.tree" --no-same-owner -xf "$part" && mv -T "$part.tree" {place}
"""


class Programs:
    """The trees on the machines of a run. ``machines``: returns its current machines."""

    def __init__(self, machines: Callable[[], Sequence[Machine]], progress: Report, slow: float = SLOW_SECONDS) -> None:
        self._machines = machines
        self._progress = progress
        self._slow = slow
        self._bringing = threading.Lock()

    def bring(self, tree: Path, machine: Machine) -> None:
        """Copy a tree to this machine and to the others of the run, concurrently. Raises ProvisionError."""
        with self._bringing:
            if machine.knows(tree):
                return
            lacking = [one for one in self._machines() if not one.has(tree)]
            if machine not in lacking:
                return
            self._progress(f"sending {tree.name} to {', '.join(one.target for one in lacking)}")
            began = time.monotonic()
            machine.send(tree)
            others = [one for one in lacking if one is not machine]
            if others and time.monotonic() - began > self._slow:
                with contextlib.suppress(ProvisionError):  # then we send it, which reports the problem
                    give_on(tree, machine, others)
            with concurrent.futures.ThreadPoolExecutor(max(1, len(others))) as threads:
                list(threads.map(lambda one: one.send(tree), [one for one in others if not one.knows(tree)]))


def give_on(tree: Path, source: Machine, others: Sequence[Machine]) -> None:
    """Copy a tree from a machine that has it to the others. Raises ProvisionError."""
    packed = f"{source.directory}/given.tar"
    made = f"tar -C {shlex.quote(source.place(tree))} -cf {packed} . && sha256sum {packed} | cut -d ' ' -f 1"
    digest = source.session.ask(made, seconds=PACK_SECONDS).strip()
    port = source.port()
    address = source.facts.address
    text = _SERVE.format(programs=shlex.quote(f"{source.facts.root}/programs"))
    words = shlex.join([packed, address, str(port), str(SERVE_SECONDS)])
    number = source.session.agent.begin(f"exec $leader sh -c {shlex.quote(text)} serve {words} >>given.log 2>&1")
    try:
        with concurrent.futures.ThreadPoolExecutor(len(others)) as threads:
            futures = [threads.submit(_fetch, tree, one, address, port, digest) for one in others]
        for future in futures:
            future.result()
    finally:
        source.session.agent.signal(number, "KILL")
        source.session.ask(f"rm -f {packed}")


def _fetch(tree: Path, machine: Machine, address: str, port: int, digest: str) -> None:
    place = machine.place(tree)
    script = _FETCH.format(
        part=shlex.quote(f"{place}.part-{machine.session.name}"),
        address=address,
        port=port,
        digest=digest,
        place=shlex.quote(place),
    )
    machine.session.ask(script, seconds=PACK_SECONDS)
    machine.has(tree)

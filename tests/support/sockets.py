"""The ports on which the processes of a run listen, as the kernel lists them."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.runs import Run

LISTENS = "0A"  # the state of a TCP socket in /proc/net
PROGRAM = re.compile(r'users:\(\("([^"]*)"')


class Port(NamedTuple):
    """A port that is open to others: a listening TCP socket, or a bound UDP socket that has no peer."""

    program: str
    address: str
    number: int


def open_ports(hosts: Sequence[Host]) -> set[Port]:
    """Every open port of every process of the run, but for those that work below another host of the run."""
    run = Path(hosts[0].directory).parents[1]
    own = [Path(host.directory) for host in hosts]
    ports: set[Port] = set()
    for process in Run(run, 0, 0.0, kept=False).processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            works = Path(process.cwd())
            if works.is_relative_to(run) and not any(works.is_relative_to(directory) for directory in own):
                continue
            for one in process.net_connections(kind="inet"):
                bound = one.type == socket.SOCK_DGRAM and not one.raddr
                if one.laddr and (one.status == psutil.CONN_LISTEN or bound):
                    ports.add(Port(process.name(), one.laddr.ip, one.laddr.port))
    return ports


def port_watch(hosts: Sequence[Host], port: int) -> Callable[[], set[Port]]:
    """A function that returns every port that its calls have found open.

    It looks at every process when ``port`` opens or closes, and otherwise once a second: such a look takes long.
    """
    seen: set[Port] = set()
    latest, was_open = 0.0, False

    def look() -> set[Port]:
        nonlocal latest, was_open
        lines = [line for kind in ("tcp", "tcp6") for line in Path("/proc/net", kind).read_text().splitlines()[1:]]
        sockets = [line.split() for line in lines]
        is_open = any(words[3] == LISTENS and int(words[1].rpartition(":")[2], 16) == port for words in sockets)
        if is_open != was_open or time.monotonic() > latest + 1:
            seen.update(open_ports(hosts))
            latest, was_open = time.monotonic(), is_open
        return seen

    return look


def open_ports_elsewhere(host: Host) -> set[Port]:
    """Every open port of every program of a host that has its own network, as its ``ss`` lists them."""
    ports = set()
    for line in host.run(["ss", "-H", "-l", "-n", "-t", "-u", "-p"]).stdout.splitlines():
        words = line.split()
        if program := PROGRAM.search(line):  # of others it does not see the program
            address, _, number = words[4].rpartition(":")
            ports.add(Port(program[1], address.partition("%")[0], int(number)))
    return ports


def beyond_this_machine(ports: set[Port]) -> set[Port]:
    """The ports that another machine may reach."""
    return {port for port in ports if port.address != "127.0.0.1"}

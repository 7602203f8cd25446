"""The ports on which the processes of a run listen, as the kernel lists them."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.runs import Run

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

"""Round trips between two network namespaces of this machine, measured by one thread of this process.

A socket belongs to the namespace in which it was made. So a single thread can hold both ends of a connection. It sends
a byte on one end, receives it on the other, and sends it back. No other program or thread is involved.
"""

from __future__ import annotations

import os
import socket
import struct
import time

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.network.namespaces import Namespace

ECHO, ECHO_REPLY = 8, 0  # types of ICMP
HEADER = 20  # bytes of the IPv4 header without options that a raw socket receives too
LOST_SECONDS = 2.0  # after its round trip and these seconds a packet is lost
LOST = 5  # packets in a row


def ping(source: Namespace, address: str, samples: int, asked: float) -> float:
    """The shortest of several pings from a namespace to an address, in seconds.

    asked: the round trip that the path should have, in seconds. Lost packets do not count. Raises ProvisionError if all
    are lost.
    """
    made = source.make_socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    times: list[float] = []
    with made:
        made.settimeout(asked + LOST_SECONDS)
        for number in range(samples + LOST):
            if len(times) < samples and (seconds := _ping_once(made, address, number)) is not None:
                times.append(seconds)
    if not times:
        raise ProvisionError(f"no answer to {samples + LOST} pings from {source.name} to {address}")
    return min(times)


def _ping_once(made: socket.socket, address: str, number: int) -> float | None:
    """Seconds until the answer to one ping; None without an answer."""
    identity = os.getpid() & 0xFFFF
    began = time.perf_counter()
    made.sendto(_packet(identity, number), (address, 0))
    limit = began + (made.gettimeout() or LOST_SECONDS)
    while time.perf_counter() < limit:
        try:
            answer = made.recv(512)
        except TimeoutError:
            return None
        kind, _, _, whose, which = struct.unpack("!BBHHH", answer[HEADER : HEADER + 8])
        if (kind, whose, which) == (ECHO_REPLY, identity, number):
            return time.perf_counter() - began
    return None


def _packet(identity: int, number: int) -> bytes:
    """A ping packet without a body."""
    checksum = 0xFFFF - _sum(struct.pack("!BBHHH", ECHO, 0, 0, identity, number))
    return struct.pack("!BBHHH", ECHO, 0, checksum, identity, number)


def _sum(content: bytes) -> int:
    """The one's complement sum of the 16-bit words of a packet (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def exchange(source: Namespace, target: Namespace, address: str, samples: int, asked: float) -> float:
    """The shortest of several exchanges of one byte over TCP from ``source`` to ``address`` of ``target``, in seconds.

    asked: the round trip that the path should have, in seconds. Raises ProvisionError if it cannot connect.
    """
    seconds = 4 * asked + LOST * LOST_SECONDS  # time for repeated packets
    try:
        with (
            target.make_socket(socket.AF_INET, socket.SOCK_STREAM) as listener,
            source.make_socket(socket.AF_INET, socket.SOCK_STREAM) as near,
        ):
            for one in (listener, near):
                one.settimeout(seconds)
            listener.bind((address, 0))
            listener.listen()
            near.connect(listener.getsockname())
            with listener.accept()[0] as far:
                far.settimeout(seconds)
                for connection in (near, far):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return min(_exchange_once(near, far) for _ in range(samples))
    except OSError as error:
        raise ProvisionError(f"no exchange over TCP from {source.name} to {address}: {error}") from None


def _exchange_once(near: socket.socket, far: socket.socket) -> float:
    began = time.perf_counter()
    near.sendall(b"x")
    far.recv(1)
    far.sendall(b"x")
    near.recv(1)
    return time.perf_counter() - began

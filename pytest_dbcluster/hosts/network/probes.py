"""Round trips between two network namespaces of this machine, measured by one thread of this process.

A socket belongs to the namespace in which it was made, so a single thread can hold both ends of a connection. It sends
a byte on one end, receives it on the other, and sends it back: no other program and no other thread takes part.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import select
import socket
import struct
import time

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.network.namespaces import Namespace

ECHO, ECHO_REPLY = 8, 0  # types of ICMP
HEADER = 20  # bytes of an IPv4 header without options, which a raw socket receives too
LOST_SECONDS = 2.0  # a packet that is not back then, beyond its round trip, is lost
LOST = 5  # packets in a row
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 32, 33, 35  # asm-generic/socket.h
ANCILLARY = 64  # bytes: room for the time of a packet
BUFFER = 32 * 2**20  # bytes of packets that wait while this process does not run


@dataclasses.dataclass(frozen=True)
class Plan:
    """How pings are sent: how many, one each ``interval`` seconds.

    window: how many are on their way at once, at most. late: seconds after which one counts as lost.
    """

    count: int
    interval: float
    window: int
    late: float


@dataclasses.dataclass
class Flight:
    """A ping. sent, back: when, in seconds since 1970; back is 0 for one that is not back."""

    sent: float
    back: float = 0.0


@dataclasses.dataclass
class _Train:
    """Pings so far. times: when each was sent, by ``time.monotonic``. back: how many are.

    gone: of so many, from the first one on, it is known whether they are overdue. overdue: how many of these are.
    """

    flights: list[Flight]
    times: list[float]
    back: int = 0
    gone: int = 0
    overdue: int = 0

    def under_way(self, since: float) -> int:
        """How many may still come back. since: those sent before are overdue."""
        while self.gone < len(self.times) and self.times[self.gone] < since:
            self.overdue += not self.flights[self.gone].back
            self.gone += 1
        return len(self.flights) - self.back - self.overdue


_identities = itertools.count(os.getpid())


def ping(source: Namespace, address: str, samples: int, asked: float) -> float:
    """The shortest of so many pings from a namespace to an address, in seconds.

    asked: the round trip that the path should have, in seconds. Lost packets do not count. Raises ProvisionError when
    no answer comes.
    """
    made = source.make_socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    times: list[float] = []
    with made:
        made.settimeout(asked + LOST_SECONDS)
        for number in range(samples + LOST):
            if len(times) < samples and (seconds := _pinged(made, address, number)) is not None:
                times.append(seconds)
    if not times:
        raise ProvisionError(f"no answer to {samples + LOST} pings from {source.name} to {address}")
    return min(times)


def train(source: Namespace, address: str, body: bytes, plan: Plan) -> list[Flight]:
    """Send pings with this body, and receive what comes back meanwhile. Raises OSError.

    It ends when all are back, or ``plan.late`` seconds after the last one was sent.
    """
    # A number of its own: an answer that comes very late is none to a ping of the next train.
    sent, identity = _Train([], []), next(_identities) & 0xFFFF
    with source.make_socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as made:
        _prepare(made)
        began = time.monotonic()
        while sent.back < plan.count:
            now, number = time.monotonic(), len(sent.flights)
            may = number < plan.count and sent.under_way(now - plan.late) < plan.window
            due = (
                began + number * plan.interval
                if may
                else sent.times[-1 if number == plan.count else sent.gone] + plan.late
            )
            if may and now >= due:
                with contextlib.suppress(BlockingIOError):  # it is sent as soon as there is room
                    at = time.time()
                    made.sendmsg([_packet(identity, number), body], [], 0, (address, 0))
                    sent.flights.append(Flight(at))
                    sent.times.append(now)
            if select.select([made], [], [], max(0.0, due - now))[0]:
                _receive(made, identity, sent)
            elif number == plan.count and now >= due:
                break
    return sent.flights


def _prepare(made: socket.socket) -> None:
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        with contextlib.suppress(PermissionError):  # without root the buffers of this machine have to do
            made.setsockopt(socket.SOL_SOCKET, option, BUFFER)


def _receive(made: socket.socket, identity: int, sent: _Train) -> None:
    """Note the answer that has come, at the time at which the kernel had it."""
    answer, more, _, _ = made.recvmsg(HEADER + 8, ANCILLARY)
    kind, _, _, whose, which = struct.unpack("!BBHHH", answer[HEADER:])
    if (kind, whose) != (ECHO_REPLY, identity) or which >= len(sent.flights) or sent.flights[which].back:
        return
    seconds, nanoseconds = struct.unpack("qq", more[0][2]) if more else divmod(time.time_ns(), 10**9)
    sent.flights[which].back = seconds + nanoseconds / 1e9
    sent.back += 1
    sent.overdue -= which < sent.gone


def _pinged(made: socket.socket, address: str, number: int) -> float | None:
    """Seconds until the answer to one ping; None where none comes."""
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
    """The head of a ping, for a body of zeros."""
    checksum = 0xFFFF - _sum(struct.pack("!BBHHH", ECHO, 0, 0, identity, number))
    return struct.pack("!BBHHH", ECHO, 0, checksum, identity, number)


def _sum(content: bytes) -> int:
    """The one's complement sum of the 16-bit words of a packet (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def exchange(source: Namespace, target: Namespace, address: str, samples: int, asked: float) -> float:
    """The shortest of so many exchanges of one byte over TCP from ``source`` to ``address`` of ``target``, in seconds.

    asked: the round trip that the path should have, in seconds. Raises ProvisionError when no connection is made.
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
                return min(_exchanged(near, far) for _ in range(samples))
    except OSError as error:
        raise ProvisionError(f"no exchange over TCP from {source.name} to {address}: {error}") from None


def _exchanged(near: socket.socket, far: socket.socket) -> float:
    began = time.perf_counter()
    near.sendall(b"x")
    far.recv(1)
    far.sendall(b"x")
    near.recv(1)
    return time.perf_counter() - began

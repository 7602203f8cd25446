"""A connection over a long way, as ssh's ProxyCommand: what goes through arrives later, in the order of its sending.

    python slow_line.py ADDRESS PORT SECONDS

SECONDS: how much later, on each of both ways. The line carries as much as without it. It ends with either end.
"""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable

PIECE = 2**16  # bytes
AHEAD = 256  # pieces on the way: a long line is no small one


def carry(read: Callable[[int], bytes], write: Callable[[bytes], object], seconds: float) -> threading.Thread:
    """Carry everything from one end to the other. The thread ends after the end of the input, or of the other end."""
    way: queue.Queue[tuple[float, bytes]] = queue.Queue(AHEAD)

    def take() -> None:
        piece = b"-"
        while piece:
            try:
                piece = read(PIECE)
            except OSError:
                piece = b""
            way.put((time.monotonic() + seconds, piece))

    def give() -> None:
        while True:
            due, piece = way.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not piece:
                return
            write(piece)

    threading.Thread(target=take, daemon=True).start()
    given = threading.Thread(target=give, daemon=True)
    given.start()
    return given


def main() -> None:
    """Carry both ways until the server hangs up, or until the client has and all of its words have arrived."""
    address, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    with socket.create_connection((address, port)) as server, os.fdopen(1, "wb", buffering=0) as output:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there = carry(lambda size: os.read(0, size), server.sendall, seconds)
        back = carry(server.recv, lambda piece: _all(output.fileno(), piece), seconds)
        while there.is_alive() and back.is_alive():
            there.join(0.2)


def _all(number: int, piece: bytes) -> None:
    while piece:
        piece = piece[os.write(number, piece) :]


if __name__ == "__main__":
    main()

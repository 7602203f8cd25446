"""The socket maker: a small process that makes sockets for us in other network namespaces.

A socket belongs to the network namespace in which it was made, whichever process uses it. So our process connects to
servers in a namespace that it cannot enter, and nobody else forwards the data.

It runs as a script that imports only the standard library: ``python socket_maker.py DESCRIPTOR``. Each message on the
Unix socket DESCRIPTOR asks for one socket. The answer, an open file or an error number, goes to the file that came with
the message. When no process can ask any more, it sleeps, because it also holds the namespace in which it was started.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading

CLONE_NEWNET = 0x40000000  # linux/sched.h
LENGTH = 100  # bytes; every message is shorter
MADE = b"made"
_libc = ctypes.CDLL(None, use_errno=True)


def enter(process: int) -> None:
    """Move this thread into the network namespace of a process. Raises OSError."""
    descriptor = os.open(f"/proc/{process}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(descriptor, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def answer(message: bytes, to: socket.socket) -> None:
    """Make the socket that a message asks for, and send it, or the error number.

    The message: the id of a process in the network namespace, then family, type and protocol of the socket.
    """
    process, family, kind, protocol = map(int, message.split())
    try:
        enter(process)
        with socket.socket(family, kind, protocol) as made:
            socket.send_fds(to, [MADE], [made.fileno()])
    except OSError as error:
        to.send(str(error.errno).encode())


def main() -> None:
    """Answer until no process can ask any more, then sleep."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with socket.socket(fileno=int(sys.argv[1])) as line:
        while True:
            message, files, _, _ = socket.recv_fds(line, LENGTH, 1)
            if not message:
                break
            with socket.socket(fileno=files[0]) as to:
                # In a thread, because others find the first namespace by the id of this process.
                thread = threading.Thread(target=answer, args=(message, to))
                thread.start()
                thread.join()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()

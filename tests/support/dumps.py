"""Dumps as the programs of the vendors write them."""

from __future__ import annotations

import gzip
import os
import subprocess

from pytest_dbcluster.clusters.servers.node import Node


def dumped(node: Node, *options: str) -> bytes:
    """What ``mariadb-dump`` or ``mysqldump`` of the server's release writes."""
    release, to = node.release, node.endpoint
    program = release.program("mariadb-dump" if release.product == "mariadb" else "mysqldump")
    given = [f"--{name}={value}" for name, value in release.client_options.items()]
    place = ["--protocol=tcp", f"--host={to.host}", f"--port={to.port}", f"--user={to.user}"]
    environment = {**os.environ, **release.environment, "MYSQL_PWD": to.password}
    command = [str(program), "--no-defaults", *given, *place, *options]
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def packed(text: bytes, name: str) -> bytes:
    """The content of a file, compressed as its name says; with Zstandard in two frames, as several threads write it."""
    if name.endswith(".zst"):
        from backports import zstd

        return zstd.compress(text[:20]) + zstd.compress(text[20:])
    return gzip.compress(text) if name.endswith(".gz") else text

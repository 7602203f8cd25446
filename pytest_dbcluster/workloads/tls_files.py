"""The files with which sysbench connects over TLS: certificates of the nodes, and a certificate and key of the client.

sysbench reads ``cacert.pem``, ``client-cert.pem`` and ``client-key.pem`` from its working directory. Its client library
compares the servers' certificates with the first. So this has the authority of the nodes' certificates, or the
certificate itself if the server signed it.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
import ssl
import subprocess
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.connection import Endpoint
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.hosts.host import Host

AUTHORITY, CERTIFICATE, KEY = "cacert.pem", "client-cert.pem", "client-key.pem"
DAYS = 3650
# sysbench needs a certificate of the client, and a server without an authority refuses any. Servers accept no signature
# with this curve, so the client sends none.
CURVE = "secp256k1"
NO_TLS = (
    "{} does not offer TLS: MariaDB 11.4 or later makes a certificate at its start if the spec has "
    '.with_options(ssl="ON"), and an older MariaDB has none'
)

SEVERAL = (
    "{} have different certificates, and sysbench can compare only one: connect to one node with to='writer' and "
    "without a proxy, or use MySQL, whose nodes share one authority"
)

_AUTHORITIES: weakref.WeakKeyDictionary[Node, tuple[int, bytes]] = weakref.WeakKeyDictionary()  # by node: pid, PEM


def push(cluster: Cluster, endpoints: Sequence[Endpoint], host: Host) -> str:
    """Write the files for connections to these endpoints to a load host, and return their directory there.

    Raises Unsupported as ``read`` does.
    """
    directory = f"{host.directory}/tls"
    for name, content in read(cluster, endpoints).items():
        host.push_once(content, f"{directory}/{name}")
    return directory


def read(cluster: Cluster, endpoints: Sequence[Endpoint]) -> dict[str, bytes]:
    """The files by name. Raises Unsupported in these cases:

    - a node does not offer TLS
    - nodes have different certificates with one name, of which the client library finds only the first
    - this machine cannot make a certificate
    """
    used = {name for endpoint in endpoints for name in endpoint.nodes}
    nodes = [node for node in cluster.nodes if node.name in used]
    authorities = {_authority(node): node.name for node in nodes}
    if len(authorities) > 1:
        raise Unsupported(SEVERAL.format(" and ".join(authorities.values())))
    certificate, key = _of_client(nodes[0])
    return {AUTHORITY: next(iter(authorities)), CERTIFICATE: certificate, KEY: key}


def _authority(node: Node) -> bytes:
    """The certificate that signed the one of a node, as PEM. A server that is started again may have another one."""
    pid = node.process.pid if node.process else 0
    known = _AUTHORITIES.get(node)
    if known is None or known[0] != pid:
        known = _AUTHORITIES[node] = pid, _file_of(node, "ssl_ca") or _own_certificate(node)
    return known[1]


def _file_of(node: Node, variable: str) -> bytes:
    """The content of the file that a server variable names, relative to the data directory; empty without one."""
    rows = node.query(f"SHOW GLOBAL VARIABLES LIKE '{variable}'")
    name = rows[0][1] if rows else ""
    return _read(node, str(name)) if name else b""


def _read(node: Node, name: str) -> bytes:
    try:
        return node.host.pull(name if name.startswith("/") else f"{node.data}/{name}")
    except FileNotFoundError:
        return b""


def _own_certificate(node: Node) -> bytes:
    """The certificate that a node shows in a handshake, as PEM."""
    connection = Connection(node.name, dataclasses.replace(node.endpoint, tls=True), look=node.look)
    try:
        shown = connection.certificate()
    finally:
        connection.close()
    if not shown:
        raise Unsupported(NO_TLS.format(node.name))
    return ssl.DER_cert_to_PEM_cert(shown).encode()


def _of_client(node: Node) -> tuple[bytes, bytes]:
    """A certificate and key for the client: those that MySQL has made and accepts, otherwise new ones."""
    made = _read(node, CERTIFICATE), _read(node, KEY)
    return made if all(made) else _new_certificate()


@functools.cache
def _new_certificate() -> tuple[bytes, bytes]:
    """A certificate and its key, made with openssl once in this process."""
    if not shutil.which("openssl"):
        raise Unsupported(
            "TLS needs the program openssl on this machine, which makes the client's certificate: install it"
        )
    with tempfile.TemporaryDirectory(prefix="dbcluster-tls-") as name:
        line = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{CURVE}", "-nodes"]
        line += ["-days", str(DAYS), "-subj", "/CN=dbcluster"]
        line += ["-keyout", f"{name}/{KEY}", "-out", f"{name}/{CERTIFICATE}"]
        subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return Path(name, CERTIFICATE).read_bytes(), Path(name, KEY).read_bytes()

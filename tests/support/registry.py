"""A registry of container images on this machine, with one image: what an engine asks for when it pulls."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator

from pytest_dbcluster.releases import apt

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
SIZE = 4 * 2**20


class Registry:
    """The content of a registry: the image ``name:1`` with one file of random bytes."""

    def __init__(self, name: str) -> None:
        self.name, self.asked = name, list[str]()
        tar = _tar(os.urandom(SIZE))
        config = {
            "architecture": apt.architecture(),
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [_digest(tar)]},
        }
        blobs = {CONFIG: json.dumps(config).encode(), LAYER: gzip.compress(tar, 1)}
        self.blobs = {_digest(content): content for content in blobs.values()}
        (config_row, layer_row) = (
            {"mediaType": kind, "size": len(content), "digest": _digest(content)} for kind, content in blobs.items()
        )
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config_row, "layers": [layer_row]}
        self.manifest = json.dumps(manifest).encode()
        self.digest = _digest(self.manifest)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """The status, the type and the content of an answer."""
        self.asked.append(path)
        place, _, last = path.removeprefix("/v2/").rpartition("/")
        if path == "/v2/":
            return 200, "application/json", b"{}"
        if place == f"{self.name}/manifests" and last in ("1", self.digest):
            return 200, MANIFEST, self.manifest
        if place == f"{self.name}/blobs" and last in self.blobs:
            return 200, "application/octet-stream", self.blobs[last]
        return 404, "application/json", b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no such image"}]}'


@contextlib.contextmanager
def serve(name: str) -> Iterator[tuple[Registry, str]]:
    """A registry that serves an image on 127.0.0.1, and the name of the image there."""
    registry = Registry(name)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, kind, content = registry.answer(self.path)
            self.send_response(status)
            for header, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(content))),
                ("Docker-Content-Digest", _digest(content)),
                ("Docker-Distribution-Api-Version", "registry/2.0"),
            ):
                self.send_header(header, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815  (the name is that of http.server)

        def log_message(self, *words: object) -> None:
            """Nothing is printed."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield registry, f"127.0.0.1:{server.server_port}/{name}"
        server.shutdown()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _tar(content: bytes) -> bytes:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        entry = tarfile.TarInfo("file")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return found.getvalue()

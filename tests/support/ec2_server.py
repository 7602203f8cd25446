"""The server of the stand-in for EC2: moto's, which records what is asked, and refuses on demand."""

from __future__ import annotations

import dataclasses
import email.utils
import io
import json
import socket
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import werkzeug.serving
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app

AMAZON = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
DEBIAN = "/aws/service/debian/release/"
ERROR = (
    "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors><RequestID>r</RequestID></Response>"
)


@dataclasses.dataclass
class Fault:
    """What happens at requests. times: how often, -1 for always. after: how many requests are served before.

    done: the request is served, and its answer lost: it gets the error, or the connection ends where there is none.
    """

    operation: str
    code: str
    message: str = "Words of AWS."
    status: int = 400
    times: int = 1
    after: int = 0
    done: bool = False


class Layer(Protocol):
    """Whose answers the server gives; its attributes are those of ``Ec2StandIn``."""

    requests: list[str]
    ahead: float
    quota: float
    held: Callable[[str], None]

    def fault(self, operation: str, *, done: bool) -> Fault | None:
        """What happens at a request, before it is served or after (done)."""


class QuietHandler(MotoRequestHandler):
    """Moto's, without a line for each request. layer: whose time is in the answers."""

    layer: Layer

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The time of an answer."""
        return email.utils.formatdate((timestamp or time.time()) - self.layer.ahead, usegmt=True)

    def log(self, *_: object) -> None:
        """Print nothing."""


class Recording:
    """The application of the server: records operations, and answers those that are refused."""

    def __init__(self, layer: Layer, app: Any) -> None:
        self._layer = layer
        self._app = app

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        """Serve a request (WSGI)."""
        layer = self._layer
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        service, operation = _operation(environ, body)
        layer.requests.append(f"{service}:{operation}")
        layer.held(operation)
        if fault := layer.fault(operation, done=False):
            return self._refusal(fault, service, start)
        if operation == "GetServiceQuota":
            start("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
            return [json.dumps({"Quota": {"Value": layer.quota}}).encode()]
        if operation == "GetParameter" and (name := json.loads(body)["Name"]).startswith(DEBIAN):
            body = body.replace(name.encode(), AMAZON.encode())
            environ["CONTENT_LENGTH"] = str(len(body))
        environ["wsgi.input"] = io.BytesIO(body)

        answer = list(self._app(environ, start))
        if fault := layer.fault(operation, done=True):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError(fault.code)
        return answer

    def _refusal(self, fault: Fault, service: str, start: Callable[..., Any]) -> list[bytes]:
        if service == "ssm":
            kind, text = "application/x-amz-json-1.1", json.dumps({"__type": fault.code, "message": fault.message})
        else:
            kind, text = "text/xml", ERROR.format(fault.code, fault.message)
        start(f"{fault.status} Refused", [("Content-Type", kind)])
        return [text.encode()]


def _operation(environ: Mapping[str, Any], body: bytes) -> tuple[str, str]:
    """Service and operation of a request, by its signature and its form."""
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split("/")
    service = scope[3] if len(scope) > 3 else "?"
    target = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
    form = urllib.parse.parse_qs(body.decode("utf-8", "replace"))
    return service, target or form.get("Action", ["?"])[0]


def server(layer: Layer) -> Any:
    """A server of this machine, not yet started, at a port that is free."""
    handler = type("Handler", (QuietHandler,), {"layer": layer})
    app = Recording(layer, DomainDispatcherApplication(create_backend_app))
    return werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=True, request_handler=handler)

"""A router that is the kernel of this machine, in a separate network namespace; for kernels with netem."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.network import kernel_settings
from pytest_dbcluster.hosts.network.namespaces import SYSTEM_PATH, Namespace
from pytest_dbcluster.hosts.network.router import Port, Router

TRY_SECONDS = 10.0
# The commands that a path needs, tried in a network namespace that ends with them.
TRIED = (
    "ip link set lo up && tc qdisc add dev lo root handle 1: prio bands 16 && "
    "tc qdisc add dev lo parent 1:1 netem delay 1ms && "
    "tc filter add dev lo parent 1: protocol ip prio 1 u32 match ip src 127.0.0.1/32 flowid 1:1"
)


class KernelRouter(Router):
    """Forwards in the namespace of the ports."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self.ports: Sequence[Port] = ()

    @staticmethod
    def interface(port: Port) -> str:
        """The name of a port in the router."""
        return port.outside

    def start(self, ports: Sequence[Port]) -> None:
        """Make the kernel forward between these ports."""
        self.ports = ports
        self._namespace.batch("ip", ["link set dev lo up", *self.forwarding()])
        self._namespace.set("ipv4/ip_forward", "1")
        self.tc(self.queues())

    def tc(self, lines: Sequence[str]) -> None:
        """Run these lines with ``tc`` in the namespace."""
        self._namespace.batch("tc", lines)

    def show_queues(self) -> str:
        """The output of ``tc`` in the namespace."""
        return self._namespace.output("tc", kernel_settings.SHOW)

    def why_lost(self) -> str:
        """Always empty: the kernel is never lost while we run."""
        return ""

    def close(self) -> None:
        """Do nothing: everything ends with the namespace."""


def why_not() -> str:
    """Why the kernel of this machine cannot delay packets for us, as a clause; or empty. Takes about 20 ms."""
    programs = ("unshare", "ip", "tc")
    if missing := [name for name in programs if shutil.which(name, path=SYSTEM_PATH) is None]:
        return f"no {', '.join(missing)} here"
    try:
        done = subprocess.run(
            [*(user_namespace.AS_ROOT if user_namespace.root() else user_namespace.AS_USER), "sh", "-c", TRIED],
            env={"PATH": SYSTEM_PATH},
            capture_output=True,
            text=True,
            timeout=TRY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (
        "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"tc ended with {done.returncode}"])[-1]
    )

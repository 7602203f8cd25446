"""The network between the hosts of one cluster, if its spec asks for one (``spec.with_needs(rtt=0.005)``).

Each node is in a separate network namespace. A *router* connects all of them and delays the packets between them. It is
the kernel of this machine if that has netem, otherwise a small guest. Our connections, and those of the load generator,
go straight into each namespace, unless a link names ``client``.

- ``path``: the base class of such a network, and the measurement of its delays.
- ``measured_back``: the measured delays before the rounds of a measurement and after them.
- ``kernel_settings``: loss, jitter and rate of a link, as set in the kernel.
- ``routed_path``: namespaces of this machine around a router. ``router``: the settings of a router.
- ``namespaces``: network namespaces, each held by a process of the run. ``namespace_host``: a host in one.
- ``probes``: round trips between two namespaces.
"""

__all__ = ["kernel_router", "local_paths", "measured_back", "path"]

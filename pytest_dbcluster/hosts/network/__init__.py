"""The network between the hosts of one cluster, where a spec asks for one (``spec.with_needs(rtt=0.005)``).

Each node is in a separate network namespace. A *router* leads from each one to all others, and delays packets on the
way: the kernel of this machine where it has netem, else a small guest. Our own connections, and those of the load
generator, lead straight into each namespace, unless a link names ``client``.

- ``path``: the base class of such a network, and how its delays are measured back.
- ``measured_back``: the delays of one measurement, before its rounds and after them.
- ``kernel_settings``: loss, jitter and rate of a link, as the kernel has them set.
- ``routed_path``: namespaces of this machine around a router. ``router``: the settings of a router.
- ``namespaces``: network namespaces; each lives as long as a process of the run. ``namespace_host``: a host in one.
- ``probes``: round trips between two namespaces.
"""

__all__ = ["kernel_router", "local_paths", "measured_back", "path"]

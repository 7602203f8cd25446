"""Clusters: start servers, make them a cluster, connect to it and check it.

A *node* is one server on one host. A *topology* says how nodes become a cluster, and when it is ready. A *proxy* stands
between clients and the nodes. A *dialect* is one vendor's names for programs, options, statuses and statements.

- ``startup``: ``bring_up`` starts a cluster from a ``ResolvedCluster``.
- ``cluster``: a running cluster: endpoints, settling, checks.
- ``switch``: turns a running cluster from one variant to another.
- ``table_rows``: whether tables have equal rows, on several nodes or in a copy.
- ``topology``, ``topologies/``: the base class ``Topology``, and one module for each topology.
- ``proxy``, ``proxies/``: the base class ``Proxy``, and one module for each proxy.
- ``proxy_options``: the options of a proxy that a spec may set.
- ``installed_proxy``: the base class of proxies that we cannot fetch and have never run.
- ``servers/``: one server: its my.cnf, process, connections and data template.
- ``dialects/``: the vendors.
- ``events/``: what happens to a cluster under load, such as a killed server.
- ``bringing``: copies programs of this machine to the hosts that run them.
- ``kept``: clusters that outlive the run that started them.

The path of a user's my.cnf: ``servers.cnf_file`` reads it, ``servers.cnf_judge`` checks it with the release, and
``servers.options`` adds the spec's options, which win.

The my.cnf of a node: ``bring_up`` calls ``Topology.options`` (for Galera in ``topologies/galera.py``) and adds the
user's options, which win (``servers.node.merge``). ``servers.node.Node.configure`` checks and writes the file.

A new topology is a module in ``topologies/``, a new proxy one in ``proxies/``, a new vendor one in ``dialects/``. The
module's name is the name that users type; ``tests/contracts`` tests every one. Defaults are methods of the base
classes. The optional power to restart one node is the protocol ``topology.Rejoins``.
"""

__all__ = [
    "bringing",
    "cluster",
    "dialects",
    "events",
    "kept",
    "proxy",
    "proxy_options",
    "servers",
    "startup",
    "switch",
    "table_rows",
    "topology",
]

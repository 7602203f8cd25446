"""Clusters: servers that are started, connected and checked.

A *node* is one server on one host. A *topology* says how nodes become a cluster, and when it is ready. A *proxy* stands
in front of the nodes. A *dialect* is what one vendor's servers of one version call their programs, options, statuses
and statements.

- ``startup``: ``bring_up``, how a cluster comes up.
- ``cluster``: a running cluster: endpoints, settling, checks.
- ``topology``, ``topologies/``: what a topology is, and each of them.
- ``proxy``, ``proxies/``: what a proxy is, and each of them.
- ``servers/``: one server: its my.cnf, process, connections and data template.
- ``dialects/``: the vendors.
- ``kept``: clusters that outlive the run that made them.

A new topology is a module in ``topologies/``, a new proxy one in ``proxies/``, another vendor one in ``dialects/``. The
name of the file is the name that users type, and ``tests/contracts`` runs it.
"""

__all__ = ["cluster", "dialects", "kept", "proxy", "servers", "startup", "topology"]

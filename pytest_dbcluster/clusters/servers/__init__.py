"""One server: its options, its my.cnf, its process, its connections, and the template of its data.

- ``node``: a server on a host: configure, start, ask, stop.
- ``options``: my.cnf files and options: read, checked against the server's own list, compared.
- ``variables``: facts about variables: which need a start, which differ between servers of one my.cnf.
- ``galera_options``: the options inside ``wsrep_provider_options``.
- ``parity``: the options that make vendors comparable.
- ``data_template``: a fresh data directory, made once for each release and copied to every node.
- ``connection``: control connections and endpoints.
- ``health``: what has to be true on a node that takes reads or writes.
"""

__all__ = ["connection", "data_template", "galera_options", "health", "node", "options", "parity", "variables"]

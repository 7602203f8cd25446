"""One server: its options, my.cnf, process, connections, and the template of its data.

- ``node``: a server on a host: ``Node.configure`` writes its my.cnf; start, query, stop.
- ``options``: server options: read from my.cnf files, checked against the server's own list, merged, compared.
- ``variables``: facts about variables: which need a restart, which differ although the options are the same.
- ``galera_options``: compares the options inside ``wsrep_provider_options``.
- ``parity``: the options that make vendors comparable.
- ``data_template``: a fresh data directory, made once for each release and copied to every node.
- ``connection``: control connections and endpoints.
- ``health``: the conditions under which a server takes reads or writes.
"""

__all__ = ["connection", "data_template", "galera_options", "health", "node", "options", "parity", "variables"]

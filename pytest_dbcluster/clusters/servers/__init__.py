"""One server: its options, my.cnf, process, connections, and the template of its data.

- ``node``: a server on a host: ``Node.configure`` writes its my.cnf; start, query, stop.
- ``cnf_file``: reads a my.cnf with its includes, as servers do; every option with its file and line.
- ``cnf_judge``: what a release makes of a my.cnf: ``judged`` asks its own programs, and lists all that is wrong.
- ``host_options``: options that belong to the host a my.cnf came from; they are set aside.
- ``path_options``: options that name files; the check that no server opens a file outside of its node.
- ``options``: joins the options of my.cnf files and of the spec, and checks them against the server's own list.
- ``variables``: facts about variables: which need a restart, which differ without a cause, when values are equal.
- ``galera_options``: compares the options inside ``wsrep_provider_options``.
- ``parity``: the options that make vendors comparable.
- ``data_template``: a fresh data directory, made once for each release and copied to every node.
- ``connection``: control connections and endpoints.
- ``health``: the conditions under which a server takes reads or writes.
"""

__all__ = [
    "cnf_file",
    "cnf_judge",
    "connection",
    "data_template",
    "galera_options",
    "health",
    "host_options",
    "node",
    "options",
    "parity",
    "path_options",
    "variables",
]

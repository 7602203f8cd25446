"""One server: its options, my.cnf, process, connections, and the template of its data.

- ``node``: a server on a host: ``Node.configure`` writes its my.cnf; start, query, stop.
- ``cnf_file``: reads a my.cnf and its includes as servers do, and keeps the file and line of each option.
- ``cnf_judge``: checks a my.cnf with the programs of a release: ``judge_file`` lists every problem.
- ``host_options``: options that belong to the host of a my.cnf; they are left out.
- ``path_options``: options that name files; the check that no server opens a file outside its node.
- ``options``: joins the options of my.cnf files and of the spec, and checks them against the server's own list.
- ``variables``: which variables need a restart, which always differ between servers, and which values are equal.
- ``galera_options``: compares the options inside ``wsrep_provider_options``.
- ``parity``: the options that make vendors comparable.
- ``data_template``: a new data directory, made once for each release and copied to every node.
- ``connection``: control connections and endpoints.
- ``health``: the conditions under which a server accepts reads or writes.
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

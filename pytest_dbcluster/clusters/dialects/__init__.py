"""Dialects: each vendor's names for programs, options, statuses and statements. Data, not branches in the code.

``lookup.dialect("mariadb", "10.11.19")`` returns the ``Dialect`` of a version. ``mariadb`` and ``mysql`` have the data
of each vendor, ``pxc`` the fields in which Percona XtraDB Cluster differs from MySQL. ``implied_options`` has options
that a version lacks because its behaviour is fixed. ``former_options`` explains removed and renamed options.
``release_mixes`` says which versions one cluster may have. ``gtid_sets`` compares the GTIDs of two servers. A new
vendor needs a module here and a line in ``lookup``.
"""

__all__ = [
    "dialect", "former_options", "gtid_sets", "implied_options", "lookup", "mariadb", "mysql", "pxc", "release_mixes",
]  # fmt: skip

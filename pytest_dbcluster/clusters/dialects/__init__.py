"""Dialects: each vendor's names for programs, options, statuses and statements. Data, not branches in the code.

``lookup.dialect("mariadb", "10.11.19")`` returns the ``Dialect`` of a version. ``mariadb`` and ``mysql`` have the data
of each vendor; ``implied_options`` has the options that a version does not have because its behaviour is fixed, and
``former_options`` what became of options that it does not have any more. A new vendor needs a module here and a line in
``lookup``.
"""

__all__ = ["dialect", "former_options", "implied_options", "lookup", "mariadb", "mysql"]

"""Dialects: how the vendors name the same thing. Data, not branches in the code.

``lookup.dialect("mariadb", "10.11.19")`` gives the ``Dialect`` of a version. ``mariadb`` and ``mysql`` hold the data of
each vendor; ``implied_options`` are options that a version removed because its behaviour is now fixed. Another vendor
is a module here and a line in ``lookup``.
"""

__all__ = ["dialect", "implied_options", "lookup", "mariadb", "mysql"]

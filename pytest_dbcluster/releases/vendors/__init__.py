"""Vendors: their apt repositories, and the keys that sign them.

- ``repository``: the value ``Repository``, and the repositories of MySQL, MariaDB and Percona. Data only.
- ``signing_key``: the key files of this directory, each compared with its pinned fingerprint.
- ``tarball_archive``: the archives with a tarball of each patch release. Data only.
- ``preferences``: which version apt chooses if a vendor and a distribution have the same package.

A key is never added to the system: apt gets its path for the entries of its vendor only.
"""

__all__ = ["preferences", "repository", "signing_key", "tarball_archive"]

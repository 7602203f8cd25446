"""Releases: how ``mariadb:10.11`` becomes programs on disk.

A *release* is a server version, or a tool such as sysbench, with the place of its programs. It is found in a directory
that the user names, on PATH, in the cache, or fetched from a Debian mirror without root. Programs of another Debian
suite run through their own loader, by *shims*.

- ``release``: the value ``Release``.
- ``find``: find or fetch a release by its name.
- ``catalogue``: the releases and tools that can be fetched. A new version is a row there.
- ``sources``, ``apt``, ``fetched``: Debian's mirrors, a private apt, and what was fetched.
- ``local_programs``: releases made of programs that are on this machine.
- ``layout``: where programs, plugins and scripts lie in each layout.
- ``shims``: small scripts that start a program through its own loader.
"""

__all__ = ["apt", "catalogue", "fetched", "find", "layout", "release", "shims", "sources"]

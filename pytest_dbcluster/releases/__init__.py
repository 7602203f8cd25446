"""Releases: how ``mariadb:10.11`` becomes programs on disk.

A *release* is a server version, or a tool such as sysbench, with the paths of its programs. We find it in a directory
that the user names, on PATH or in the cache. Otherwise we fetch it from a Debian mirror or from its vendor, without
root. *Shims* run programs of another Debian suite through the dynamic loader of that suite.

- ``release``: the value ``Release``.
- ``find``: find or fetch a release by its name.
- ``catalogue``: the releases and tools that can be fetched. For a new version, add a row there.
- ``vendors``: the repositories of MySQL, MariaDB and Percona, and the keys that sign them.
- ``sources``: mirrors and suites. ``apt``: a private apt that fetches from them. ``fetched``: releases in the cache.
- ``local_programs``: releases from programs that are on this machine.
- ``tarballs``: vendors' tarballs, unpacked into the cache.
- ``portable``: releases of a user with the libraries of this machine, for hosts that have another system.
- ``layout``: the paths of programs, plugins and scripts in each layout.
- ``guest_system``: the kernel of guests and the files that they see as their root.
- ``stand_in_system``: the files of stand-in hosts, which are namespaces of this machine with an ssh server.
- ``shims``: small scripts that start a program through its own dynamic loader.
"""

__all__ = [
    "apt",
    "catalogue",
    "fetched",
    "find",
    "guest_system",
    "layout",
    "portable",
    "release",
    "shims",
    "sources",
    "vendors",
]

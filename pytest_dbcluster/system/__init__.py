"""The machine we run on: the cache, locks, ports, disks and control groups.

- ``cache``: entries that are made once, whole or not at all, each under a lock.
- ``machine_lock``: who measures or builds on this machine, also between users.
- ``cgroups``: limits of CPU, memory and writes for hosts on this machine.
- ``block_devices``: which disk a directory lies on.
- ``probes``: how fast a flush is, and how many cores we may use.
- ``ports``: ports that no other run takes.
- ``processes``: whether a process still runs, by its number and the time of its start.
- ``direct_copy``: copies of data directories, shared or past the page cache.
- ``shared_directory``: a directory that every user of this machine may lock files in.
- ``worker_files``: files that workers of pytest-xdist leave for the controller.

Delays of network packets will be ``netem``.
"""

__all__ = [
    "block_devices",
    "cache",
    "cgroups",
    "direct_copy",
    "machine_lock",
    "ports",
    "probes",
    "processes",
    "worker_files",
]

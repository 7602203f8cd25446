"""The machine we run on: the cache, locks, ports, disks and control groups.

- ``cache``: entries that appear completely or not at all, each under a lock.
- ``entry_files``: the sizes and digests of an entry's files, and what is damaged.
- ``machine_lock``: processes of all users take turns to measure or build on this machine.
- ``cgroups``: limits of CPU, memory and writes for hosts on this machine.
- ``block_devices``: the disk and the file system of a directory.
- ``probes``: the time of an fsync, and the number of usable cores.
- ``ports``: free ports, each locked for one run.
- ``processes``: whether a process still runs, by its id and start time.
- ``direct_copy``: copies of data directories by reflinks or O_DIRECT.
- ``shared_directory``: lock files for all users, in a directory where every user may create files.
- ``owned_files``: files that only the owner of their directory could write.
- ``tracing``: spans, which time the phases of a run.
- ``worker_files``: files that workers of pytest-xdist leave for the controller.
"""

__all__ = [
    "block_devices",
    "cache",
    "cgroups",
    "direct_copy",
    "machine_lock",
    "owned_files",
    "ports",
    "probes",
    "processes",
    "shared_directory",
    "tracing",
    "worker_files",
]

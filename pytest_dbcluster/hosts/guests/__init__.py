"""Guests: virtual machines that are processes of this machine (user-mode Linux), and networks between them.

- ``guest``: one guest: its boot, its console, and our connection to its agent.
- ``disk``: disks of guests: sparse files, each with one owner. ``disk_server``: the program that serves one.
- ``boot_scripts``: the scripts of a guest's first process.
- ``network``: a network namespace of a run, with a bridge between its guests.
- ``user_namespace``: network namespaces without root. ``socket_maker``: how our process connects into them.
"""

__all__ = ["guest", "network", "user_namespace"]

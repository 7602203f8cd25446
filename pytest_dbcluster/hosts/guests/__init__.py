"""Guests: virtual machines that are processes of this machine (user-mode Linux), and networks between them.

- ``guest``: one guest: its boot, its console, and our line to the agent in it.
- ``disk``: disks of guests: sparse files, each with one owner. ``disk_server``: the program that serves one.
- ``boot_scripts``: what the first process of a guest does.
- ``network``: a network namespace of a run, in which its guests are on one bridge.
- ``user_namespace``: network namespaces without root. ``socket_maker``: how our process connects into them.
"""

__all__ = ["guest", "network", "user_namespace"]

"""Faults: a server, a proxy, a host, a disk or the network fails.

- ``kill``, ``kill_all``, ``kill_proxy``: the process of a server, of all servers or of the proxy ends at once.
- ``pause``: the server's process is stopped for some seconds.
- ``isolate``: a host is cut off from its peers, or also from clients, for some seconds.
- ``lose_host``: a host is gone until the load has ended.
- ``power_cut``: hosts lose their power and what they had not flushed.
- ``fill_disk``, ``slow_disk``: a disk is full, or slow, for some seconds.
- ``rtt``: the nodes are farther apart for some seconds.
"""

__all__ = [
    "fill_disk",
    "isolate",
    "kill",
    "kill_all",
    "kill_proxy",
    "lose_host",
    "pause",
    "power_cut",
    "rtt",
    "slow_disk",
]

"""Outages: what an event, such as a killed server, costs a load. Only numbers, without servers or clocks.

- ``load_times``: when the transactions of a load committed, and when it got errors.
- ``outage``: the figures of one repetition of an event, from these times.
- ``states``: the states of nodes and the routes of the proxy that were seen meanwhile.
"""

__all__ = ["load_times", "outage", "states"]

"""Repetitions of an event under load, on running clusters.

- ``event_runner``: one repetition: the load runs, the event happens, the load recovers, the cluster is made whole.
- ``event_testbed``: the round source whose rounds are such repetitions.
- ``watch``: what can be seen of the cluster meanwhile: the state of each node, and the route of the writes.
"""

__all__ = ["event_runner", "event_testbed", "watch"]

"""Capacity: the arrival rate at which a latency percentile crosses an objective. Only numbers, no servers or clocks.

- ``objective``: a percentile, such as p95, and the seconds that it must not exceed.
- ``capacity_curve``: the percentile at several arrival rates of one round, and where it crosses the objective.
- ``rates``: the arrival rates of all rounds, chosen from a search with a few open loops.
- ``summary``: the lines of a message.
"""

__all__ = ["capacity_curve", "objective", "rates", "summary"]

"""Rounds with an objective for a latency percentile, on running clusters.

- ``objective_testbed``: what its round sources have in common: open loops that may end early.
- ``capacity_testbed``: the round source of ``measure.capacity``. Each round runs several arrival rates.
- ``rate_testbed``: the round source of ``meets``. Each round runs one arrival rate.
"""

__all__ = ["capacity_testbed", "objective_testbed", "rate_testbed"]

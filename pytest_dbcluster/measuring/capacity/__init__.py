"""Capacities: the arrival rates at which a latency percentile crosses an objective, of several variants.

- ``capacity_series``: ``CapacitySeries``, the rounds of one variant, and the claims about its capacity.
"""

__all__ = ["capacity_series"]

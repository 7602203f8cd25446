"""The calls of the fixture ``measure`` as values.

- ``measure_call``: ``MeasureCall``, and the checks of its arguments.
"""

__all__ = ["measure_call"]

"""Rounds of several options, each at one of two levels.

- ``levels``: reads and checks the options of a call, before anything starts.
- ``level_testbed``: ``LevelTestbed``, the round source of combinations of levels.
"""

__all__ = ["level_testbed", "levels"]

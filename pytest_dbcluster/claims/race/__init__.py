"""A race: which of several variants is best. Pure functions.

- ``rule``: which variants leave at a look, when the race ends, and why its error holds.
"""

__all__ = ["rule"]

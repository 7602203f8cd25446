"""A race: which of several variants is best. Pure functions; ``claims.kinds.race`` is its claim.

- ``rule``: which variants leave at a look, when the race ends, and why its error holds.
- ``standing``: the place of each variant. ``wording``: the message.
"""

__all__ = ["rule", "standing", "wording"]

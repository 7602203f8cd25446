"""A race: which of several variants is best. Pure functions.

- ``rule``: which variants leave at a look, when the race ends, and why its error holds.
- ``kind``: the claim. ``standing``: the place of each variant. ``wording``: the message.
"""

__all__ = ["kind", "rule", "standing", "wording"]

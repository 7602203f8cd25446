"""The effects of several options, from the same rounds: each option has each of its two levels in half of them.

- ``design``: the levels of each round. They are drawn for each option independently of the others.
- ``trial``: the rounds with their levels, and the residuals that a claim about one option compares.
- ``contrasts``: the estimate and interval of an effect, and of an interaction of two options.
- ``chances``: the exact distribution of the statistic, and the looks.
- ``judging``: decides; start at ``judge``. ``claims.kinds.effects`` has the kinds of these claims.

The promise is exact for an option that does nothing in any combination of the others. Then the values are fixed
numbers, and only its own levels are random: 70 arrangements in each block. The residuals do not use its own levels.
"""

__all__ = ["chances", "contrasts", "design", "judging", "trial"]

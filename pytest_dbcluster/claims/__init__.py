"""Claims and their verdicts: statistics alone, without input or output.

A *claim* is a statement about two variants: ``flush_2.beats(default)``. Its *verdict* has one of three outcomes: the
claim holds, fails, or is inconclusive. The *estimate* is a ratio with its interval. Rounds are compared in *pairs*. A
claim is judged at fixed numbers of pairs, its *looks*; each look has a *critical value*.

- ``claim``: the claims a test can make, and what each one promises.
- ``verdict``: decides; start at ``judge``.
- ``estimators``: ratios, intervals, and the difference that a number of pairs can detect.
- ``critical_values``: the looks and their critical values.
- ``block_order``: the random order of the variants in each block of rounds.
- ``wording``: the message of a verdict.

To add a kind of claim, write a function and its bounds in ``claim``; ``verdict.judge`` decides from the bounds. The
functions here use their arguments alone: no server, no file, no clock. An import contract checks this rule.
"""

__all__ = ["block_order", "claim", "critical_values", "estimators", "verdict", "wording"]

"""Claims and their verdicts: statistics alone, without input or output.

A *claim* is what a test says of two variants: ``flush_2.beats(default)``. Its *verdict* is one of three outcomes: it
holds, it fails, or it is inconclusive. The *estimate* is a ratio with its interval. Variants are compared in *pairs* of
rounds, and a verdict is taken at fixed *looks*: numbers of pairs, each with its *critical value*.

- ``claim``: what can be claimed, and what ``beats`` and its kin promise.
- ``verdict``: the decision, after each look.
- ``estimators``: ratios, intervals, and what a number of pairs can show.
- ``critical_values``: the looks and their critical values.
- ``block_order``: the random order of the variants in each block of rounds.
- ``wording``: the message of a verdict.

A new kind of claim is a function in ``claim`` and a branch of ``verdict.judge``. Everything here is a function of its
arguments: no server, no file, no clock. The import contract holds that.
"""

__all__ = ["block_order", "claim", "critical_values", "estimators", "verdict", "wording"]

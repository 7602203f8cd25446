"""Claims and their verdicts: only statistics, without input or output.

A *claim* is a statement about two variants: ``flush_2.beats(default)``. Its *verdict* has one of three outcomes: the
claim holds, fails, or is inconclusive. The *estimate* is a ratio with its interval. Rounds are compared in *pairs*. A
claim is judged at fixed numbers of pairs, its *looks*; each look has a *critical value*.

- ``claim``: what a claim, its kind and its verdict are, and what every claim promises.
- ``kinds``: one file for each kind of claim.
- ``verdict``: decides; start at ``judge``.
- ``block_order``: the random order of the rounds, and which rounds make a pair. The promised errors rest on this draw.
- ``cluster_difference``: how far equal clusters can differ, which decides nothing.
- ``critical_values``: the looks and their critical values.
- ``pairs``: the data of a claim: pairs of rounds, and the order in which they ran. ``of_losses``: those of ``fades``.
- ``intervals``: the estimate and its interval.
- ``counts``: the same for a counter, in a typical round.
- ``power``: the difference that a number of pairs can detect, and the pairs that would decide.
- ``estimators``: the noise of pairs; figures that no verdict rests on.
- ``carry_over``: whether a variant slows the round that follows it.
- ``wording``: the message of a verdict.
- ``factorial``: the statistics of claims about the effects of several options.
- ``repetitions``: the statistics of claims about an event. ``race``: which of several variants is best.

To add a kind of claim, write a file of ``kinds``; ``verdict.judge`` decides from its bounds. The functions here use
only their arguments: no server, no file, no clock. An import contract checks this rule.
"""

__all__ = [
    "block_order",
    "carry_over",
    "claim",
    "cluster_difference",
    "counts",
    "critical_values",
    "estimators",
    "factorial",
    "intervals",
    "kinds",
    "pairs",
    "power",
    "race",
    "repetitions",
    "verdict",
    "wording",
]

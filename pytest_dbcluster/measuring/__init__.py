"""Measurements: blocks of alternating rounds, drawn until a claim is decided. No server, file or process is used here.

A *measurement* holds the rounds of one workload on several variants. It draws *blocks* from a *round source*: the
testbed in a run, made-up numbers in a test. A block runs each variant once, in random order. A test gets one *series*
per variant. A claim about two series draws blocks until it is decided, and returns an *answer*.

- ``series``: ``Series``, with the claims ``beats``, ``same_as`` and others, and ``ordered`` and ``fades``.
- ``event_series``: ``EventSeries``, the repetitions of an event, with the claims ``below``, ``shorter`` and others.
- ``capacity/``: ``CapacitySeries``, the capacity of a variant, with the claim ``meets``.
- ``question``: what a test asks: a claim, its variants and its metric, as a value.
- ``decision``: judges a claim after each block; ``claims.verdict`` has the rule.
- ``measurement``: holds the drawing, the values and the claims of one workload on several variants.
- ``drawing``: draws blocks from a round source, warms up, repeats void blocks.
- ``values``: what the rounds say, by metric.
- ``claim_log``: the claims of a test about one measurement. ``answer``: a claim with its verdict, as a value.
- ``race``: which of several variants is best; those that are beaten run no more.
- ``curve``: one workload at several values of a field, such as 1, 4 and 16 threads.
- ``factorial``: the effects of several options, from the same rounds.
- ``round_trips``: how many round trips an operation takes, of variants that differ in their round-trip time.
- ``why/``: what the servers of two variants did in extra rounds after a verdict.
- ``evidence``: what is known about the clusters, as a value. ``remarks``: the lines below a verdict.

Rounds are not run or timed here: ``testbed.round_runner.run_round`` runs the workload, which reports its own seconds.
"""

__all__ = [
    "answer",
    "capacity",
    "claim_log",
    "curve",
    "drawing",
    "event_series",
    "evidence",
    "factorial",
    "measurement",
    "question",
    "race",
    "remarks",
    "round_trips",
    "series",
    "values",
    "why",
]

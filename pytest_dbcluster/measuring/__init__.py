"""Measurements: blocks of alternating rounds, drawn until a claim is decided. No server, file or process is used here.

A *measurement* holds the rounds of one workload on several variants. It draws *blocks* from a *round source*: the
testbed in a run, made-up numbers in a test. A block runs each variant once, in random order. A test gets one *series*
per variant. A claim about two series draws blocks until it is decided, and returns an *answer*.

- ``series``: ``Series``, with the claims ``beats``, ``same_as`` and others, and ``ordered`` and ``fades``.
- ``question``: what a test asks: a claim, its variants and its metric, as a value.
- ``decision``: judges a claim after each block; ``claims.verdict`` has the rule.
- ``measurement``: draws blocks, warms up, repeats void blocks.
- ``answer``: a claim with its verdict, as a value.
- ``curve``: one workload at several values of a field, such as 1, 4 and 16 threads.
- ``reach``: whether a claim can reach its first look before its budget ends.
- ``round_trips``: how many round trips an operation takes, of variants that differ in their round-trip time.
- ``round_source``: the interface that rounds come from. ``evidence``: what it knows about their clusters, as a value.
- ``progress``, ``remarks``: what is shown while rounds are drawn, and the lines below a verdict.

Rounds are not run or timed here: ``testbed.round_runner.measured`` runs the workload, which reports its own seconds.
"""

__all__ = [
    "answer",
    "curve",
    "evidence",
    "measurement",
    "progress",
    "question",
    "reach",
    "remarks",
    "round_source",
    "round_trips",
    "series",
]

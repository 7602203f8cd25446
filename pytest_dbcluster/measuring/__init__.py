"""Measurements: blocks of alternating rounds, drawn until a claim is decided. No server, file or process is seen here.

A *measurement* holds the rounds of one workload on several variants. Rounds come in *blocks*, each variant once, in
random order, from a *round source*: the testbed in a run, made-up numbers in a test. A test holds a *series* for each
variant. A claim about two series draws blocks until it is decided, and gives an *answer*.

- ``series``: what a test holds, ``Series`` and ``ordered``.
- ``decision``: ask a claim; draw until its verdict is certain.
- ``measurement``: draw a block, warm up, keep void blocks apart.
- ``answer``: a claim with its verdict, as a value.
- ``curve``: one workload at several values of a field, such as 1, 4 and 16 threads.
- ``instance_floor``: how far two instances of one variant differ.
- ``round_source``: what rounds are drawn from.
- ``progress``, ``remarks``: what is shown while rounds are drawn, and the lines below a verdict.
"""

__all__ = ["answer", "curve", "instance_floor", "measurement", "progress", "remarks", "round_source", "series"]

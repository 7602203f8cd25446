"""What one round said: its result, its ledger, its latencies and its counters. Values alone.

A *round* is one measurement of one variant. The workload gives a ``RunResult``: seconds, operations, commits, and, of
workloads that retry, a *ledger* (attempts, errors and retries by code and node) and a *histogram* of latencies. The
servers give *counters*: changes of their statuses over the round. A *metric* is what a claim is about: throughput,
goodput, a percentile, or a counter.

- ``round``: ``Round`` and ``RunResult``.
- ``ledger``, ``ledger_summary``: what became of each transaction, and the lines that say so.
- ``histogram``: latencies in buckets.
- ``counters``: names of counters, and their values from two readings of server statuses.
- ``metrics``: the values of a metric, and which metrics a workload can have.
- ``open_loop``: arrival rates, and whether a round kept its rate.
- ``load_generator``: whether the load generator was the bottleneck.

A new counter is a line in ``counters``; a new metric is a name in ``metrics``.
"""

__all__ = ["counters", "histogram", "ledger", "ledger_summary", "load_generator", "metrics", "open_loop", "round"]

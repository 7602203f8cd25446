"""The values of a measured round: result, ledger, latencies and counters. ``testbed`` measures them.

A *round* is one run of a workload on one variant. The workload returns a ``RunResult``: seconds, operations, commits.
A workload that retries also returns a *ledger* (attempts, errors and outcomes of its transactions) with a *histogram*
of latencies. *Counters* are the changes of server statuses over the round. A claim compares a *metric*: throughput,
goodput, a percentile or a counter.

- ``round``: ``Round`` and ``RunResult``.
- ``ledger``, ``ledger_summary``: the outcomes of transactions, and the lines about them in a message.
- ``histogram``: latencies in buckets.
- ``counters``: names of counters, and their values from two readings of server statuses.
- ``metrics``: the value of a metric in a round, and the metrics that a workload can have.
- ``pairing``: pairs of rounds, as the data of a claim.
- ``capacity``: the arrival rate at which a latency percentile crosses an objective.
- ``open_loop``: arrival rates, and whether a round kept its rate.
- ``outages``: what an event, such as a killed server, costs a load.
- ``round_length``: how long the rounds of a claim last, chosen from its warm-up.
- ``turned_away``: clients that servers refused because they had no free connection.
- ``load_generator``: whether the load generator was the bottleneck.
- ``busy_machine``: whether other programs took cores from the rounds.

To add a counter, add a line to ``counters``; to add a metric, add a name to ``metrics``. ``testbed.round_runner`` runs
a round; ``Round.throughput`` is operations / seconds.
"""

__all__ = [
    "busy_machine",
    "capacity",
    "counters",
    "histogram",
    "ledger",
    "ledger_summary",
    "load_generator",
    "metrics",
    "open_loop",
    "outages",
    "pairing",
    "round",
    "round_length",
    "turned_away",
]

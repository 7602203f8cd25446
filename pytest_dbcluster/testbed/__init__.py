"""The testbed: runs the rounds of a measurement on real clusters.

A *variant* is a cluster spec with everything resolved: release, topology, options. Variants that differ only in options
that can change at run time share one cluster. A *switch* turns the cluster from one variant to the next. The *pool* has
the running clusters of a run. A *data set* is a populated data directory in the cache, from which clusters start.

- ``testbed``: ``Testbed``, the round source of a run. ``Testbed.round`` prepares a cluster for a round.
- ``round_runner``: one round. ``run_round``: a reading, the workload (it reports its seconds), drain, a reading.
- ``sampler``: CPU, disk, network and server counters of a round. ``timeline``: samples of every second.
- ``resolution``: looks up and checks a spec once, and makes it a variant.
- ``pool``: starts clusters when they are needed, and reuses them.
- ``variants``: variants, and their cold-start references; ``clusters.switch`` has the switch.
- ``datasets``: data sets in the cache, and how they are populated.
- ``comparability``: which workloads may not be compared, and lines about variants.
- ``evidence``: which variants may not be compared, and claims that stay inconclusive on this machine.
- ``capacity/``: rounds at several arrival rates, with an objective for a latency.
- ``events/``: repetitions of an event under load.
- ``options/``: rounds of several options, each at one of two levels.
- ``why/``: extra rounds after a verdict, and what the servers report about them.
- ``names``: a unique name for each variant.
- ``anchor``: the speed of a pinned server. A history compares the speed of each variant with it.
- ``calibrations``: how far equal clusters can differ, from a calibration on this machine or by default.
"""

__all__ = [
    "anchor",
    "calibrations",
    "capacity",
    "comparability",
    "datasets",
    "events",
    "names",
    "options",
    "pool",
    "resolution",
    "testbed",
    "variants",
    "why",
]

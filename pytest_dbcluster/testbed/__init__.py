"""The testbed: real clusters on which the rounds of a measurement are run.

A *variant* is a cluster spec with everything resolved: release, topology, options. Variants that differ only in options
that can change at run time share one cluster, and a *switch* turns it from one to the next. The *pool* holds the
clusters of a run. A *data set* is a loaded database, kept in the cache, from which clusters start.

- ``testbed``: ``Testbed``, the round source of a run.
- ``resolution``: a spec is looked up and checked once, and becomes a variant.
- ``pool``: clusters that run, started when they are needed and reused.
- ``variants``: variants, their cold-start references, and the switch.
- ``round_runner``, ``sampler``: one round, from its first reading to its drain.
- ``datasets``: loaded databases in the cache.
- ``durability``, ``blind_spots``, ``comparability``: what keeps variants from being compared.
- ``remarks``: what a message says of the variants.

Phases of a fault (before, during, after) will be ``phases``.
"""

__all__ = ["comparability", "datasets", "pool", "resolution", "testbed", "variants"]

"""The statistics of claims about repetitions: of an event, such as a killed server, or rounds of a single variant.

- ``samples``: the values of the repetitions of one variant, of which some may be lower bounds.
- ``order_statistics``: the interval of a median or another quantile, from independent repetitions of one variant.
- ``permutation``: the interval of a difference of two variants, from blocks of repetitions in random order.
- ``kind``: what the kinds of these claims have in common; each kind is a file of ``claims.kinds``.
- ``proportion``: what the kinds have in common that fail at the first exception.
- ``wording``: the message of their verdicts.
"""

__all__ = ["kind", "order_statistics", "permutation", "proportion", "samples", "wording"]

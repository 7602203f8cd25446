"""The kinds of claims, one file each: bounds, sentences, and how the claim is called.

A kind is an instance of ``claims.claim.Kind``. Calling it with a margin makes a claim: ``beats(0.1)``. To add a kind,
write its file and import the kind here. It needs a name, ``bounds`` and ``says``; all else has a default. The claim is
then a method of every series. No other code compares the name of a kind; a test holds that.

- ``beats``: faster than the baseline.
- ``guards``: no slower, or the same.
- ``scales``: so many times as fast.
- ``lower``: less of a counter.
- ``ordered``: several variants, each faster than the one before.
- ``fades``: a loss is smaller for one pair of variants than for another.
- ``race``: one of several variants is best; ``claims.race`` has the statistics.
- ``meets``: one variant keeps an objective for its latency.
- ``differs``: a comparison without a claim.
- ``effects``: the effect of an option; ``claims.factorial`` has the statistics.
- ``events``: about an event, such as ``below``.
"""

from pytest_dbcluster.claims.kinds.beats import beats
from pytest_dbcluster.claims.kinds.differs import differs
from pytest_dbcluster.claims.kinds.effects import effect_beats, effect_differs, effect_same_as
from pytest_dbcluster.claims.kinds.events import (
    below,
    event_differs,
    event_no_slower_than,
    loses_nothing,
    returned_by,
    shorter,
)
from pytest_dbcluster.claims.kinds.fades import fades
from pytest_dbcluster.claims.kinds.guards import no_slower_than, same_as
from pytest_dbcluster.claims.kinds.lower import lower
from pytest_dbcluster.claims.kinds.meets import meets
from pytest_dbcluster.claims.kinds.ordered import ordered
from pytest_dbcluster.claims.kinds.race import race
from pytest_dbcluster.claims.kinds.scales import scales

__all__ = [
    "beats",
    "below",
    "differs",
    "effect_beats",
    "effect_differs",
    "effect_same_as",
    "effects",
    "event_differs",
    "event_no_slower_than",
    "events",
    "fades",
    "guards",
    "loses_nothing",
    "lower",
    "meets",
    "no_slower_than",
    "ordered",
    "race",
    "returned_by",
    "same_as",
    "scales",
    "shorter",
]

"""The kinds of claims about an event, one file each; ``claims.repetitions`` has their statistics.

- ``below``: a duration is below a bound. ``shorter``: it is shorter than with another variant.
- ``differs``: a comparison of a duration without a claim.
- ``no_slower_than``: the speed after the event is no lower than with another variant.
- ``loses_nothing``: no repetition loses a transaction.
- ``returned_by``: the node gets what it missed in one way.
"""

from pytest_dbcluster.claims.kinds.events.below import below
from pytest_dbcluster.claims.kinds.events.differs import event_differs
from pytest_dbcluster.claims.kinds.events.loses_nothing import loses_nothing
from pytest_dbcluster.claims.kinds.events.no_slower_than import event_no_slower_than
from pytest_dbcluster.claims.kinds.events.returned_by import returned_by
from pytest_dbcluster.claims.kinds.events.shorter import shorter

__all__ = [
    "below",
    "differs",
    "event_differs",
    "event_no_slower_than",
    "loses_nothing",
    "no_slower_than",
    "returned_by",
    "shorter",
]

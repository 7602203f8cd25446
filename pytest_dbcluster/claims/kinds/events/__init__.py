"""The kinds of claims about an event, one file each; ``claims.repetitions`` has their statistics.

- ``below``: a duration is below a bound. ``shorter``: it is shorter than with another variant.
- ``loses_nothing``: no repetition loses a transaction.
- ``returned_by``: the node gets what it missed in one way.
"""

from pytest_dbcluster.claims.kinds.events.below import below
from pytest_dbcluster.claims.kinds.events.loses_nothing import loses_nothing
from pytest_dbcluster.claims.kinds.events.returned_by import returned_by
from pytest_dbcluster.claims.kinds.events.shorter import shorter

__all__ = ["below", "loses_nothing", "returned_by", "shorter"]

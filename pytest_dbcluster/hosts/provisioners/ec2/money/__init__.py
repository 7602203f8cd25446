"""What instances cost: prices and where they are from, the cost of a launch, and the one cap of a run.

``prices`` knows what things cost, ``price_list`` renews that from AWS, ``cost`` says the most that a launch can cost
until its instances end themselves, and ``ledger`` holds all launches of a run, of all its workers, under
``--db-max-cost``; ``spending`` is the part of one process. A price that nobody has named is unknown, and what has an
unknown price is not launched.
"""

__all__ = ["cost", "ledger", "price_list", "prices", "spending"]

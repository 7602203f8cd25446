"""The cost of instances: prices and their sources, the cost of a launch, and the cap of a run.

- ``prices``: the prices of instances and volumes. ``price_list`` renews them from AWS.
- ``cost``: the maximum cost of a launch until its instances end themselves.
- ``ledger``: keeps all launches of a run, of all workers, under ``--db-max-cost``. ``spending``: the part of one
  process.

If a price is unknown, we do not launch what needs it.
"""

__all__ = ["cost", "ledger", "price_list", "prices", "spending"]

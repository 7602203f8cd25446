"""The history: each claim in earlier runs, and whether a new run differs from them. No verdict depends on it.

- ``history_file``: reads the append-only file, and adds lines and accepted changes.
- ``entry``: one line, made from a ClaimRecord and its run. A *series* has the runs that can be compared with each
  other: one claim on one release, machine, provisioner and profile (``SeriesKey``).
- ``record_history``: adds a run to its history, at the end of the run.
- ``guard``: the drift guard, which warns about claims of a new run. ``drift``: its statistics.
- ``change_points``: where the level of a series changed.
- ``views``: the series as text, as CSV, and as charts.

A new view of a series is a function of ``views``.
"""

__all__ = ["change_points", "drift", "entry", "guard", "history_file", "record_history", "views"]

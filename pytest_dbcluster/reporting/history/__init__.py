"""The history: what each claim was in earlier runs, and whether a new run differs from them. No verdict depends on it.

- ``history_file``: the append-only file, its lines read and added, and accepted changes.
- ``entry``: one line, made from a ClaimRecord and its run. A *series* has the runs that can be compared with each
  other: one claim on one release, machine, provisioner and profile (``SeriesKey``).
- ``record_history``: adds a run to its history, at the end of the run.
- ``guard``: the drift guard, the sentences about the claims of a new run. ``drift``: its statistics.
- ``change_points``: where a series changed its level for good.
- ``views``: the series as text, as CSV, and as charts.

Another way to look at a series is a function of ``views``.
"""

__all__ = ["change_points", "drift", "entry", "guard", "history_file", "record_history", "views"]

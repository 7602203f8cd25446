"""Reports: what a claim leaves behind, and everything that shows it.

A *record* is what is kept of one claim or one curve. The *results directory* holds the records of a run
(``claims.jsonl``), a CSV and a chart for each claim, and the closing table (``summary.md``). The *terminal* shows
progress and the closing table; *Allure* gets each claim as a step of its test.

- ``records``: ``ClaimRecord`` and ``CurveRecord``, and how they are made.
- ``schema``: the typed documents that are written to and read from the results directory.
- ``report``: who is told of a claim; in a worker of pytest-xdist that is the controller.
- ``results_directory``, ``rounds_csv``, ``charts``: what is written.
- ``terminal``, ``tables/``: what is printed.
- ``allure``: the one module that imports allure.
- ``published``: published figures, shown beside measured ones.

A new report is a module here and one line in ``report``.
"""

__all__ = ["allure", "published", "records", "report", "results_directory", "schema", "tables"]

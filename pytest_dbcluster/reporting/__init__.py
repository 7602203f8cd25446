"""Reports: the record of each claim, and everything that shows or saves records.

A *record* holds all data of one claim or one curve. The *results directory* holds the records of a run as JSON lines
(``claims.jsonl``, ``curves.jsonl``). It also has a CSV file and a chart for each claim and curve, and a summary
(``summary.md``). The *terminal* shows the progress of a claim, its verdict, and the closing table at the end of the
run. *Allure* gets each claim as a step of its test, and shows it in the test's description.

Look here for:

- The lines of a claim in the terminal: ``tables/entries.py`` makes them, ``terminal.py`` prints them. The closing table
  of ``summary.md``: ``tables/closing.py`` makes its rows, ``tables/layout.py`` formats them.
- The table of claims by release (``matrix.csv``): ``tables/matrix.py``. The table of a curve: ``tables/curves.py``.
- ``ClaimRecord`` and ``CurveRecord``: ``records``. How they are made: ``recording``.
- The typed documents of the results directory: ``documents``. How those of claims and curves are written and read:
  ``schema``.
- Which outputs get a claim: ``report``; what they have in common, and the workers of pytest-xdist: ``sinks``.
- The files of a run: ``results_directory`` (directory), ``rounds_csv`` (one CSV file), ``charts`` (SVG).
- The page of a run, one HTML file: ``page``. Claims in earlier runs: ``history``.
- Rounds as results of pytest-benchmark: ``pytest_benchmark``.
- Files and lines for GitHub Actions: ``github``.
- Answers that a run takes over from the one that it continues: ``resume``.
- The lock that keeps two runs out of one directory: ``results_lock``. Files that could not be written: ``unwritten``.
- Allure's results and page: ``allure``, the only folder that imports allure.
- Published figures, shown next to measured ones: ``published``.

A new report is a module here and one line in ``report``.
"""

__all__ = [
    "allure",
    "documents",
    "history",
    "page",
    "published",
    "pytest_benchmark",
    "recording",
    "records",
    "report",
    "results_directory",
    "results_lock",
    "resume",
    "schema",
    "sinks",
    "tables",
    "unwritten",
]

"""Tables: rows and columns made from records, and their layout as text or Markdown.

- ``closing``: the closing table of a run (claims, inconclusive claims, comparisons, published seconds, curves).
- ``entries``: the claims of that table as the terminal shows them. ``interval_bar``: the bar of an interval in them.
- ``states``: words and symbols for the outcomes of claims and tests.
- ``matrix``: claims by release, for a run on several releases.
- ``curves``: the table and the CSV of a curve.
- ``effects``: the effects of options, a table for each measurement.
- ``no_worse``: the sentence and the rows of ``dbcluster compare``.
- ``parts``: the transactions and statements of a workload, in the rounds of a claim.
- ``joint_error``: the chance that any claim of a run is wrong.
- ``less_durable``: which of the faster variants guarantee less after a commit.
- ``layout``: aligns and wraps a ``TableBlock`` for a terminal, or writes it as Markdown.
"""

__all__ = [
    "closing",
    "curves",
    "effects",
    "entries",
    "interval_bar",
    "joint_error",
    "layout",
    "less_durable",
    "matrix",
    "no_worse",
    "parts",
    "states",
]

"""Tables: rows and columns made from records, and their layout as text or Markdown.

- ``closing``: the closing table of a run (claims, inconclusive claims, comparisons, published seconds, curves).
- ``matrix``: claims by release, for a run on several releases.
- ``curves``: the table and the CSV of a curve.
- ``layout``: aligns and wraps a ``Block`` of rows for a terminal, or writes it as Markdown.
"""

__all__ = ["closing", "curves", "layout", "matrix"]

"""Tables of text: the closing table, curves, and the matrix of releases.

``layout`` turns blocks of rows into text or Markdown; the others make such blocks from records.
"""

__all__ = ["closing", "curves", "layout", "matrix"]

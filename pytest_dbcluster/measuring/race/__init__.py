"""A race as a measurement: draws blocks until one of several variants has won; variants that were beaten run no more.

- ``running``: asks the race and returns its answer; start at ``run``.
- ``winner``: ``Winner``, which a test gets.
- ``terms``: which variants a race accepts, and its margin.
"""

__all__ = ["running", "terms", "winner"]

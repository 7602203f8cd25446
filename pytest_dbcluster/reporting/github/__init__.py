"""Files and lines for GitHub Actions (``--db-github``), made from the results directory of a run.

- ``step_summary``: the step summary, annotations of red and inconclusive tests, and outputs.
- ``benchmark_entries``: the claims as input of github-action-benchmark.
"""

__all__ = ["benchmark_entries", "step_summary"]

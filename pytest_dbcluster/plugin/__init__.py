"""The pytest plugin: options, hooks and fixtures.

- ``hooks``: the entry point for pytest, with all hooks and fixtures.
- ``command_line``, ``settings``: the ``--db-...`` options, and their checked values.
- ``fixture``: ``Measure``, the type of the fixture ``measure``.
- ``session``: one run: its provisioner, its pool of clusters, its report.
- ``grouping``, ``xdist``: which tests share clusters, and which worker runs them.
- ``code_of_test``: the clusters and workloads that the code of a test shows before it runs.
- ``expected_time``, ``expected_clusters``: the expected time of a run, printed before it begins.
- ``reachable``: whether the budget of a claim suffices for the rounds of the tests.

Only ``hooks`` and ``xdist`` import pytest. Every run of pytest loads ``hooks`` where the plugin is installed, so it
imports heavy modules only when it uses them.
"""

__all__ = ["fixture"]

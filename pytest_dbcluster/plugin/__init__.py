"""The pytest plugin: what pytest sees.

- ``hooks``: the entry point of pytest: hooks and fixtures.
- ``command_line``, ``settings``: the ``--db-...`` options, and their checked values.
- ``fixture``: ``Measure``, what a test gets as ``measure``.
- ``session``: one run: its provisioner, its pool of clusters, its report.
- ``grouping``, ``xdist``: which tests share clusters, and which worker gets them.
- ``expected_time``: how long a run may take, said before it begins.

Only ``hooks`` and ``xdist`` import pytest. ``hooks`` is loaded in every run of pytest where the plugin is installed, so
it imports nothing heavy.
"""

__all__ = ["fixture"]

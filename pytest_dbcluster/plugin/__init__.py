"""The pytest plugin: options, hooks and fixtures.

- ``hooks``: the entry point for pytest, with all hooks and fixtures.
- ``command_line``, ``settings``: the ``--db-...`` options, and their checked values.
- ``fixture``: ``Measure``, the type of the fixture ``measure``.
- ``session``: one run: its provisioner, its pool of clusters, its report.
- ``grouping``, ``xdist``: which tests share clusters, and which worker runs them.
- ``collection/``: checks of tests before they run: wrong clusters, too small budgets, expected time.
- ``results``: the results directory of the run. ``run_file``: the tests in ``run.json``.
- ``junit``: claims in the XML of ``--junit-xml``. ``signals``: SIGTERM and SIGHUP end a run as Ctrl-C does.

Every run of pytest loads ``hooks`` if the plugin is installed, so heavy modules are imported when used.
"""

__all__ = ["fixture"]

"""Collection: estimates and checks of tests before they run.

- ``event_calls``: the repetitions of events that the source of a test asks for.
- ``expected_time``: the expected time of a run, printed before it begins.
- ``expected_cost``: the maximum cost of the instances of a run.
- ``past_runs``: the seconds and verdicts of tests in earlier runs, from the history of the run.
- ``budgets``: the budget of a claim, which a mark of its test can set.
- ``budget_order``: the order of tests in a run with a budget.
- ``checks``: calls the modules of this folder for the measuring tests of a run.
- ``own_provisioner``: the provisioner of a run without ``--db-provisioner``.
- ``refusals``: wrong releases and clusters, which are usage errors.
"""

__all__: list[str] = []

"""Collection: what is known of tests before they run.

- ``expected_time``: the expected time of a run, printed before it begins.
- ``expected_cost``: the most that the instances of a run can cost.
- ``past_runs``: what tests took and decided in earlier runs, from the history of the run.
- ``budgets``: the budget of a claim, which a mark of its test can give.
- ``budget_order``: the order of tests in a run with a budget.
- ``checks``: asks the modules of this folder about the measuring tests of a run.
- ``own_provisioner``: where the tests of a run have their clusters without ``--db-provisioner``.
- ``refusals``: wrong releases and clusters, which are usage errors.
"""

__all__: list[str] = []

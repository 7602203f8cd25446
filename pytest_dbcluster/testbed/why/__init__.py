"""Extra rounds that no verdict counts, and what the servers report about them.

- ``why_testbed``: runs these rounds, on clusters whose performance_schema is on.
- ``readings``: reads counts of statements, waits and status from the servers of a cluster.
- ``plans``: asks a server for the plans of statements.
"""

__all__ = ["why_testbed"]

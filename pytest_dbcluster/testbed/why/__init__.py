"""Extra rounds that no verdict counts, and what the servers report about them.

- ``why_testbed``: runs these rounds, on clusters whose performance_schema is on.
- ``readings``: reads counts of statements, waits and status from the servers of a cluster.
- ``plans``: asks a server for the plans of statements.
- ``cpu_stacks``: samples the functions that take the servers' CPU.
"""

__all__ = ["cpu_stacks", "why_testbed"]

"""Why one variant is slower: what the servers of two variants did in extra rounds, compared without a server.

- ``observation``: what the servers report about the rounds of one variant: statements, plans, waits and status.
- ``stacks``: the functions that took the servers' CPU.
- ``compared``: the comparison of two variants as a value, which a record holds. ``comparison`` makes it.
- ``wording``: the sentences about the largest differences.
"""

__all__ = ["compared", "comparison", "observation", "stacks", "wording"]

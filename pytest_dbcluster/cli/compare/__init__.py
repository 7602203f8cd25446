"""The command ``dbcluster compare``: is one my.cnf, or one release, worse than another?

- ``command``: its options and its output.
- ``comparison``: its measurements with their results.
- ``by_option``: which of the options that differ makes the difference.
- ``workloads``: its workloads, with their data.
"""

__all__ = []

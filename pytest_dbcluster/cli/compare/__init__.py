"""The command ``dbcluster compare``: is one my.cnf, or one release, worse than another? Which of several is best?

- ``command``: its options and its output.
- ``comparison``: its measurements with their results.
- ``by_option``: which of the options that differ makes the difference.
- ``guards``: the margins that it claims.
- ``racing``: three or more files, which race.
- ``workloads``: its workloads, with their data.
"""

__all__ = []

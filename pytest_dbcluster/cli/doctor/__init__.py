"""The command ``dbcluster doctor``: what this machine, other machines and a release can do.

- ``command``: its options and its output.
- ``findings``: the checks of a machine.
- ``release_trial``: the trial of a release, with a report for us.
"""

__all__ = []

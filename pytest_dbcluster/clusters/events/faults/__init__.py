"""Faults: a server or a host fails.

- ``kill``: the server's process ends at once.
- ``pause``: the server's process is stopped for some seconds.
"""

__all__ = ["kill", "pause"]

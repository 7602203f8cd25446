"""The command ``dbcluster``: releases, images, clusters for work by hand, and what this machine offers.

- ``main``: the parser, and which module runs which command.
- ``clusters``: ``up``, ``ps``, ``down``, ``reap``.
- ``cache``, ``images``, ``doctor``: the commands of these names.
- ``text``: what several commands print.

A new command is a module here and a line in ``main``.
"""

__all__ = []

"""The command ``dbcluster``: a first project, releases, images, the cache, clusters by hand, a check of this machine.

- ``main``: the parser, the help texts, and the small commands ``releases`` and ``fetch``.
- ``init``: the command ``init``, with the texts that it writes.
- ``clusters``: the commands ``up``, ``ps``, ``down`` and ``reap``.
- ``compare``, ``comparison``: the command ``compare``: its output, and its measurements with their judgement.
- ``cache``, ``images``, ``doctor``: the commands ``cache``, ``image`` and ``doctor``.
- ``text``: progress lines and sizes, for several commands.

A new command is a module here and a line in ``main``.
"""

__all__ = []

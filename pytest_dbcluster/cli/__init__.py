"""The command ``dbcluster``: releases, images, the cache, clusters started by hand, and a check of this machine.

- ``main``: the parser, the help texts, and the small commands ``releases`` and ``fetch``.
- ``clusters``: the commands ``up``, ``ps``, ``down`` and ``reap``.
- ``compare``, ``comparison``: the command ``compare``: its output, and its measurements with their judgement.
- ``cache``, ``images``, ``doctor``: the commands ``cache``, ``image`` and ``doctor``.
- ``text``: progress lines and sizes, for several commands.

A new command is a module here and a line in ``main``.
"""

__all__ = []

"""The command ``dbcluster``: first project, releases, images, cache, clusters by hand, reports, a check of the machine.

- ``main``: the parser, the help texts, and the small commands ``releases`` and ``fetch``.
- ``init``: the command ``init``, with the texts that it writes.
- ``clusters``: the commands ``up``, ``ps``, ``down`` and ``reap``.
- ``compare``, ``comparison``: the command ``compare``: its output, and its measurements with their judgement.
- ``calibrate``: the command ``calibrate``: how far fresh equal clusters differ.
- ``cache``, ``images``, ``doctor``: the commands ``cache``, ``image`` and ``doctor``.
- ``report``: the command ``report``.
- ``ec2``: the command ``ec2``.
- ``text``: progress lines and sizes, for several commands.

A new command is a module here and a line in ``main``.
"""

__all__ = []

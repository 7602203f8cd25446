"""The command ``dbcluster``: first project, releases, images, cache, clusters by hand, reports, a check of the machine.

- ``main``: the list of commands, and the parser.
- ``init``: the command ``init``, with the texts that it writes.
- ``log_digest``: ``init --workload --from``: a log becomes a workload directory.
- ``up``: the command ``up``.
- ``clusters``: the commands ``ps``, ``down`` and ``reap``.
- ``compare``: the command ``compare``.
- ``calibrate``: the command ``calibrate``: how far fresh equal clusters differ.
- ``releases``: the commands ``releases``, ``fetch`` and ``image``.
- ``cache``: the command ``cache``.
- ``doctor``: the command ``doctor``: findings about machines, and the trial of a release.
- ``report``: the command ``report``.
- ``ec2``: the command ``ec2``.
- ``workload_option``: the option ``--workload`` of ``compare`` and ``calibrate``.
- ``text``: progress lines, sizes and the option ``--wait``, for several commands.

A new command is a line in ``main``, and a module here with a function ``add_COMMAND`` that adds its options.
"""

__all__ = []

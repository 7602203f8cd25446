"""The command ``dbcluster ec2``: what the provisioner ec2 needs before a run, prices and permissions.

- ``commands``: its parser, and the commands ``prices`` and ``policy``.
- ``leftovers``: ``ps``, ``down`` and ``reap`` with ``--provisioner ec2``.
"""

__all__ = []

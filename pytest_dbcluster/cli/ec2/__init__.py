"""The command ``dbcluster ec2``: the prices and permissions that the provisioner ec2 needs before a run.

- ``commands``: its parser, and the commands ``prices`` and ``policy``.
- ``leftovers``: ``ps``, ``down`` and ``reap`` with ``--provisioner ec2``.
"""

__all__ = []

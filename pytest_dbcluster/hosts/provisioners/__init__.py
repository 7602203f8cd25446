"""Provisioners: each module or folder here is a provisioner; its name is the value of ``--db-provisioner``.

A module assigns its class to ``PROVISIONER``. Code that several provisioners share is beside this folder. Other
packages add a provisioner with an entry point in the group ``pytest_dbcluster.provisioners``.
"""

__all__ = ["container", "ec2", "ssh"]

"""Provisioners: each module or folder here is one, and its name is what users type.

A module names its class ``PROVISIONER``. What several provisioners need lies beside this folder. Outside packages add
one by an entry point in the group ``pytest_dbcluster.provisioners``.
"""

__all__ = ["container"]

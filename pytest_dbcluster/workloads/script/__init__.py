"""``LuaScript``: a user's sysbench script, unchanged, with retries, a ledger and equal inputs within a block.

- ``workload``: the class ``LuaScript``.
- ``inspection``: what a script defines, found by loading it in sysbench before anything starts.

``workloads/lua/user_script.lua`` runs the script.
"""

from pytest_dbcluster.workloads.script.workload import LuaScript

__all__ = ["LuaScript"]

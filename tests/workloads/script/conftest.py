"""What tests of user's scripts share: a lone server, a host for the load, and scripts that a test writes."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.script import LuaScript
from pytest_dbcluster.workloads.workload import Setting


@pytest.fixture
def setting(standalone, client, said):
    """The lone server; the databases of scripts are dropped afterwards."""
    node = standalone.nodes[0]
    yield Setting(standalone, client, node.release, "quick", said.append)
    for database in ("sbtest", "sbtest_loaded"):
        node.query(f"DROP DATABASE IF EXISTS {database}")


@pytest.fixture
def script(tmp_path):
    """``script(text, **fields)``: a workload of this text of Lua."""

    def script(text, **fields):
        path = tmp_path / "mine.lua"
        path.write_text(text)
        return LuaScript(path, **{"threads": 2, "seconds": 1.0, **fields})

    return script

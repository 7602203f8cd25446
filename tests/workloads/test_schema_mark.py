"""SchemaMark: the mark of complete tables, on a server of each vendor."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.schema_mark import SchemaMark


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request, bring):
    """A server of each vendor."""
    made = bring("standalone", 1, request.getfixturevalue(request.param))
    made.nodes[0].query("CREATE DATABASE marked")
    yield made.nodes[0]
    made.close()


@pytest.mark.parametrize("scale", ["2x100", "sql bob's shop 0a1b", "back\\slash", "ünï 商店", "x" * 600])
def test_a_mark_may_have_any_text(server, scale):
    """It contains the name of a user's directory or script. Another text is another data set."""
    mark = SchemaMark("marked", 1, scale)
    mark.write(server)

    assert mark.stands(server)
    assert not SchemaMark("marked", 1, f"{scale}0").stands(server)

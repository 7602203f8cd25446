"""The evidence of a question, read from running servers."""

from __future__ import annotations

from pytest_dbcluster.measuring.evidence import Evidence
from tests.support.testbeds import ONE, OTHER, WRITE, evidence, source


def test_evidence_outlives_its_clusters(pool):
    """Each server is asked once, so a later answer costs no query and a record needs no server."""
    made = source(pool, WRITE, ONE, OTHER)
    first = evidence(made, 1, 0)
    pool.close()
    again = evidence(made, 1, 0)

    assert pool.clusters == []
    assert first == again != Evidence()
    assert list(first.durability) == list(first.specs) == ["other", "standalone1"]
    assert first.specs["other"].document.release == "mariadb:10.11"
    assert first.specs["other"].options == {"lock_wait_timeout": "40"}
    assert dict(first.data) == made.data == dict.fromkeys(("other", "standalone1"), WRITE.data_text)
    assert (first.mode, first.delays, first.rtts) == ("write", {}, {})
    assert "control driver" in first.environment

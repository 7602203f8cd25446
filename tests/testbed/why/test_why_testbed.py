"""Extra rounds on real servers: what differs between two variants is found, and the verdict stays as it is."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.testbed.why import readings, why_testbed
from pytest_dbcluster.testbed.why.readings import StatementExample
from pytest_dbcluster.testbed.why.why_testbed import ServerComparer, WhyTestbed
from pytest_dbcluster.workloads.sql import SQLFiles
from tests.support.facts import missing
from tests.support.testbeds import MYSQL, ONE, OTHER, WRITE, source

TABLE = "CREATE TABLE items (id INT PRIMARY KEY, code INT NOT NULL, name VARCHAR(40) NOT NULL{index});"
FIND = "select name from items where code = ?"
LATEST = "select name from items where id = ?"


def shop(path, index):
    """A workload with two statements; ``index`` is the part of the schema that makes one of them fast."""
    path.mkdir()
    (path / "workload.toml").write_text("rows = {items = 5000}\n")
    (path / "schema.sql").write_text(TABLE.format(index=index))
    (path / "find.sql").write_text("\\set code random(1, 1000)\nSELECT name FROM items WHERE code = :code;\n")
    (path / "latest.sql").write_text("\\set id random(1, 5000)\nSELECT name FROM items WHERE id = :id;\n")
    return SQLFiles(path, threads=2, seconds=0.2)


def shown(plan):
    """The parts of a plan that do not depend on statistics."""
    return [(step.table, step.access, step.key) for step in plan]


def test_servers_without_performance_schema_have_a_stand_in(pool):
    """On MariaDB: the separate servers end after the extra rounds, and those of the claim stay as they are."""
    said = []
    testbed = source(pool, WRITE, ONE, OTHER, progress=said.append)
    testbed.round(0, block=0, position=0)
    (cluster,) = pool.clusters
    found = ServerComparer(testbed)(1, 0, 0.5)
    after = testbed.round(0, block=1, position=0)

    assert (found.reason, found.rounds, found.remarks) == ("", 3, (why_testbed.SEPARATE,))
    assert "insert into t1" in found.statements[0].statement
    assert found.statements[0].baseline.calls == pytest.approx(1)
    assert not found.statements[0].has_other_plan
    assert [one for one in found.waits if one.name.startswith("wait/io/file/innodb/") and one.baseline > 0]
    assert missing("\n".join(said), "3 extra rounds of each variant", why_testbed.SEPARATE, "no verdict counts") == []
    assert pool.clusters == [cluster]
    assert (cluster.nodes[0].variables()["performance_schema"], after.void) == ("OFF", "")


def test_another_plan_on_shared_servers_is_named(pool, tmp_path):
    """On MySQL, whose performance_schema is on: on the servers of the claim, which switch from variant to variant."""
    visible = MYSQL.with_options(optimizer_switch="use_invisible_indexes=on").named("visible")
    testbed = source(pool, shop(tmp_path / "hidden", ", KEY code (code) INVISIBLE"), MYSQL, visible)
    found = ServerComparer(testbed)(1, 0, 20.0)
    (cluster,) = pool.clusters

    assert (found.reason, found.rounds, found.remarks) == ("", 1, (why_testbed.AS_TEXT,))
    assert [one.statement for one in found.statements if one.has_other_plan] == [FIND]
    first = found.statements[0]
    assert [shown(first.baseline_plan), shown(first.candidate_plan)] == [
        [("items", "ALL", "")],
        [("items", "ref", "code")],
    ]
    assert {one.name for one in found.waits} & {"wait/io/table/sql/handler"}
    assert cluster.unusable == ""


def test_servers_without_access_leave_a_reason(pool, monkeypatch):
    """The claim stays as it is; the servers are asked once for each two variants."""
    asked = []

    def denied(nodes):
        asked.append(nodes)
        raise SQLError("node1", readings.STATEMENTS, 1142, "SELECT command denied")

    monkeypatch.setattr(readings, "read", denied)
    compare = ServerComparer(source(pool, WRITE, ONE, OTHER))
    found = compare(1, 0, 0.1)

    assert compare(1, 0, 0.1) is found
    assert len(asked) == 1
    assert missing(found.lines[0], "is not known", "1142", "denied") == []
    assert found.largest == found.statements == ()


def test_nothing_begins_after_the_end_of_the_run(pool):
    """Its reason is that of the run."""
    said = []
    found = ServerComparer(source(pool, WRITE, ONE, OTHER, progress=said.append), lambda: "the budget is spent")(
        1, 0, 1.0
    )

    assert found.lines == ["what differs on the servers is not known: the budget is spent"]
    assert (said, pool.clusters) == ([], [])


def test_statements_go_as_text(tmp_path):
    """A workload without prepared statements stays as it is, and so does one whose files have changed."""
    files = shop(tmp_path / "shop", "")

    assert why_testbed.as_text(files) == dataclasses.replace(files, prepared=False)
    assert why_testbed.as_text(files).seconds == files.seconds
    assert why_testbed.as_text(WRITE) is WRITE
    (tmp_path / "shop" / "find.sql").write_text("\\wrong\n")
    assert why_testbed.as_text(files) is files
    with pytest.raises(ConfigError):
        dataclasses.replace(files, prepared=False)


def test_both_variants_explain_the_same_texts():
    """Each in its own database; what only one of them ran has its own text."""
    of = {
        0: {FIND: StatementExample("a", "find 1"), LATEST: StatementExample("a", "latest 1")},
        1: {FIND: StatementExample("b", "find 2"), "DO ?": StatementExample("b", "DO 2")},
    }
    texts = {FIND: "find 1", LATEST: "latest 1", "DO ?": "DO 2"}

    for number, schemas in ((0, ["a", "a", "b"]), (1, ["b", "a", "b"])):
        found = why_testbed.shared_examples(of, number, (0, 1))
        assert {name: one.text for name, one in found.items()} == texts
        assert [found[name].schema for name in texts] == schemas


def test_only_servers_without_performance_schema_are_separate(pool):
    """An option of the test counts: the servers of the variant that has it on serve the other one too."""
    on, other = (spec.with_options(performance_schema="ON").named("on") for spec in (ONE, OTHER))
    one = WhyTestbed(source(pool, WRITE, ONE, on))
    both = WhyTestbed(source(pool, WRITE, OTHER, ONE))

    assert [dict(each.static)["performance_schema"] for each in (*one.variants, *both.variants)] == ["ON"] * 4
    assert one.separate == []
    assert both.separate == both.variants
    assert WhyTestbed(source(pool, WRITE, on, other)).separate == []

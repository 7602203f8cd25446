"""What identifies SQL files: their content, their name, the names of their parts, and their variables."""

from __future__ import annotations

import dataclasses
import hashlib
import re

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring import curve
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.workload import HasDataSet, OpenLoop, Timed
from tests.workloads.sql.directories import directory

BARE = {"browse.sql": "SELECT 1;\n", "data/sales.csv": "1,2,c\n", "workload.toml": None}
ORDER = "BEGIN;\nINSERT INTO sales (item) VALUES (1);\nCOMMIT;\n"


@pytest.fixture
def shop(tmp_path):
    """A directory with two transactions and a file of data."""
    return directory(tmp_path / "shop", {**BARE, "order.sql": ORDER})


@pytest.fixture
def sized(tmp_path):
    """A directory whose table has as many rows as a variable says."""
    text = 'rows = {items = ":items"}\nvariables = {items = 100}\n'
    return directory(tmp_path / "sized", {"workload.toml": text})


def test_files_have_their_digests(shop):
    """They are those of ``sha256sum``, and names are relative to the parent of the directory."""
    files = SQLFiles(shop).files

    assert sorted(files) == ["shop/browse.sql", "shop/data/sales.csv", "shop/order.sql", "shop/schema.sql"]
    assert files["shop/order.sql"] == hashlib.sha256(ORDER.encode()).hexdigest()


@pytest.mark.parametrize("name", ["browse.sql", "data/sales.csv", "schema.sql", "workload.toml"])
def test_another_file_is_another_content(shop, name):
    """A file of any kind, also one that is new. The name of the workload stays."""
    before = SQLFiles(shop)
    path = shop / name
    path.write_text((path.read_text() if path.exists() else "attempts = 5") + "\n")
    after = SQLFiles(shop)

    assert after.content_hash != before.content_hash
    assert (str(after), before != after) == (str(before), True)


def test_threads_and_seconds_are_no_content(shop):
    """A history continues with what only the workload's name has."""
    contents = {SQLFiles(shop, threads=threads, seconds=2).content_hash for threads in (1, 8)}

    assert contents == {SQLFiles(shop).content_hash}


def test_parts_are_transactions_and_statements(shop):
    """BEGIN and COMMIT are statements too: a commit is what options of durability change."""
    assert SQLFiles(shop).parts == ("browse", "order", "browse:1", "order:1", "order:2", "order:3")


def test_a_sweep_over_a_variable_changes_the_data(sized):
    """Each point has its own data set, and its value in its name."""
    field, points = curve.loads(SQLFiles(sized), {"variables": {"items": (10, 20)}})

    assert field == "items"
    assert [str(load) for _, load in points] == ["sql sized t16 items=10", "sql sized t16 items=20"]
    assert [load.read.manifest.rows for _, load in points] == [{"items": 10}, {"items": 20}]
    assert len({load.data_set for _, load in points}) == 2
    assert curve.names(field, points) == [str(load) for _, load in points]


def test_an_unknown_variable_is_refused(sized):
    """Its value would change nothing. A sweep lists the variables."""
    with pytest.raises(ConfigError, match=r"no file has the variable :itmes; did you mean :items\?$"):
        SQLFiles(sized, variables={"itmes": 5})
    with pytest.raises(ConfigError, match="unknown key of variables of sql sized t16 'itmes'; known: items; did you"):
        curve.loads(SQLFiles(sized), {"variables": {"itmes": (1, 2)}})


def test_its_name_says_what_it_is(tmp_path):
    """Directory, threads, and what differs from workload.toml."""
    path = directory(tmp_path / "shop", {"other.sql": "SELECT 1;"})
    workload = SQLFiles(path, threads=8)

    assert str(workload) == "sql shop t8"
    assert str(workload.at_rate(120)) == "sql shop t8 at 120/s"
    assert str(dataclasses.replace(workload, prepared=False, to="reader")) == "sql shop t8 to reader as text"
    chosen = SQLFiles(path, transactions=["browse.sql@3", "other.sql"], variables={"items": 5})
    assert str(chosen) == "sql shop t16 of browse@3,other items=5"
    assert workload.data_set == chosen.data_set
    assert re.fullmatch(r"sql shop [0-9a-f]{10}", workload.data_set)


def test_equal_directories_are_equal_workloads(tmp_path):
    """They can be keys; a changed statement or variable makes another workload."""
    path = directory(tmp_path / "shop", {})
    workload = SQLFiles(path)
    changed = SQLFiles(path, variables={"items": 5})

    assert workload == SQLFiles(path) == workload.at_rate(5).at_rate(None)
    assert hash(workload) == hash(SQLFiles(path))
    assert hash(changed) != hash(workload) != hash(workload.at_rate(5))
    assert not changed.writes
    (path / "browse.sql").write_text("UPDATE items SET stock = 1 WHERE id = 1;")
    assert SQLFiles(path) != workload
    assert SQLFiles(path).writes
    assert all(isinstance(workload, protocol) for protocol in (HasDataSet, OpenLoop, Timed))

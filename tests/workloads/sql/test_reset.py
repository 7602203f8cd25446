"""What a reset of SQL files restores on real servers, and which tables it refuses."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql import tables
from tests.workloads.sql.directories import SCHEMA, query

# Which values each connection drew, in order.
NOTE = "\\set a random(1, 1000000000)\nINSERT INTO sales (item, name) VALUES (:a, CONNECTION_ID());"


@pytest.mark.parametrize(("reset", "drifts"), [("surplus", False), ("none", True), ("back.sql", False)])
def test_the_drift_of_rows_is_reported(setting, files, reset, drifts):
    """How many rows a round begins with more than were loaded."""
    manifest = f'reset = "{reset}"\ntransactions = ["note.sql"]\nrows = {{items = 5, sales = 10}}\n'
    back = "DELETE FROM sales WHERE id > :last;"
    changed = {"workload.toml": manifest + "variables = {last = 10}\n", "note.sql": NOTE, "back.sql": back}
    workload = files(changed)
    workload.prepare(setting)
    first = workload.run(setting)
    workload.reset(setting)
    second = workload.run(setting)

    assert first.figures == {"row_drift": 0}
    assert second.figures == {"row_drift": first.commits if drifts else 0}


def test_a_copy_brings_everything_back(each_setting, files):
    """Also updated and deleted rows, defaults and computed columns; a second reset finds nothing to do.

    CHECKSUM TABLE of MariaDB differs for equal rows with a virtual column.
    """
    setting = each_setting
    changed = {
        "schema.sql": SCHEMA.replace(
            "stock INT NOT NULL",
            "stock INT NOT NULL, twice INT AS (stock * 2), half INT AS (stock / 2) STORED, "
            "made TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
        ),
        "workload.toml": 'reset = "copy"\nrows = {items = 100, sales = 10}\n',
        "browse.sql": "\\set id random(1, 100)\nBEGIN;\nUPDATE items SET stock = stock + 1 WHERE id = :id;\n"
        "DELETE FROM sales WHERE id = 5;\nINSERT INTO sales (item) VALUES (:id);\nCOMMIT;",
    }
    workload = files(changed)

    def rows():
        return [query(setting, workload, f"SELECT * FROM {table} ORDER BY id") for table in workload.read.tables]

    workload.prepare(setting)
    loaded = rows()
    workload.run(setting)
    run = rows()
    workload.reset(setting)
    node = setting.cluster.nodes[0]

    assert all(before != after for before, after in zip(loaded, run, strict=True))
    assert rows() == loaded
    assert tables.copies(workload.database).restore(node, list(workload.read.tables)) == []


def test_a_copy_takes_no_triggers(setting, files):
    """They would fire while rows are copied back."""
    trigger = "CREATE TRIGGER t AFTER INSERT ON sales FOR EACH ROW SET @a = 1;"
    manifest = 'reset = "copy"\nafter_load = ["triggers.sql"]\nrows = {items = 5}\nvariables = {items = 5}\n'
    with pytest.raises(ConfigError, match='reset = "copy" would fire the triggers of table sales'):
        files({"workload.toml": manifest, "triggers.sql": trigger}).prepare(setting)


def test_a_reset_finds_new_rows_by_keys_that_are_no_numbers(setting, files):
    """Keys of texts, dates and several columns; rows that were loaded stay, whatever their keys are."""
    changed = {
        "schema.sql": "CREATE TABLE names (name VARCHAR(20) COLLATE utf8mb4_bin, line INT, PRIMARY KEY (name, line));\n"
        "CREATE TABLE days (day DATE PRIMARY KEY, note TEXT);",
        "data/names.csv": "a,1\nA,1\nb,7\n",
        "workload.toml": "rows = {days = 20}\n",
        "browse.sql": "\\set line unique_id() + 100\nINSERT INTO names VALUES ('a', :line), ('new', :line);\n"
        "INSERT IGNORE INTO days VALUES (NOW() + INTERVAL :line DAY, 'new');",
    }
    workload = files(changed)
    workload.prepare(setting)
    before = [query(setting, workload, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("names", "days")]
    workload.run(setting)
    drift = query(setting, workload, "SELECT (SELECT COUNT(*) FROM names) - 3, (SELECT COUNT(*) FROM days) - 20")
    workload.reset(setting)

    assert min(drift[0]) > 0
    assert before == [query(setting, workload, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("names", "days")]


LINES = {
    "schema.sql": SCHEMA + "CREATE TABLE `lines` (sale INT, line INT, note TEXT, PRIMARY KEY (sale, line));",
    "workload.toml": "rows = {items = 5, sales = 10, lines = 30}\n",
    "browse.sql": "\\set sale random(1, 20)\n\\set line unique_id() + 100\n"
    "INSERT INTO `lines` VALUES (:sale, :line, 'new');",
}


def test_a_reset_finds_new_rows_below_a_first_number_that_was_loaded(each_setting, files):
    """A new line of a loaded sale goes, and so does a line of a new sale; loaded lines stay."""
    setting, workload = each_setting, files(LINES)
    workload.prepare(setting)
    loaded = query(setting, workload, "SELECT * FROM `lines` ORDER BY sale, line")
    workload.run(setting)
    new = query(setting, workload, "SELECT SUM(sale <= 10), SUM(sale > 10) FROM `lines` WHERE note = 'new'")
    workload.reset(setting)

    assert min(new[0]) > 0
    assert query(setting, workload, "SELECT * FROM `lines` ORDER BY sale, line") == loaded
    assert workload.run(setting).figures == {"row_drift": 0}


def test_equal_numbers_of_rows_hide_no_new_row_if_transactions_delete(setting, files):
    """Or if a trigger may."""
    trigger = "CREATE TRIGGER t AFTER INSERT ON sales FOR EACH ROW DELETE FROM items;"
    manifest = LINES["workload.toml"]
    for name, more in {
        "delete": {"remove.sql": "DELETE FROM `lines` WHERE sale = 0;"},
        "trigger": {"triggers.sql": trigger, "workload.toml": f'after_load = ["triggers.sql"]\n{manifest}'},
    }.items():
        workload = files({**LINES, **more}, name=f"{name}/shop")
        workload.prepare(setting)
        query(setting, workload, "DELETE FROM `lines` ORDER BY sale LIMIT 1")
        query(setting, workload, "INSERT INTO `lines` VALUES (5, 9999, 'new')")
        workload.reset(setting)

        assert query(setting, workload, "SELECT COUNT(*), SUM(note = 'new') FROM `lines`") == [(29, 0)]


def test_tables_that_a_reset_cannot_shorten_are_refused(setting, files):
    """If transactions insert into them; another reset is named."""
    changed = {
        "schema.sql": "CREATE TABLE items (id INT PRIMARY KEY); CREATE TABLE names (name VARCHAR(9));",
        "workload.toml": "rows = {items = 5}\n",
        "browse.sql": "\\set name random_text(9)\nINSERT IGNORE INTO names VALUES (:name);",
    }
    with pytest.raises(
        ConfigError,
        match=r'reset = "surplus" finds new rows by their primary keys, and table names has none: add one .* "copy"',
    ):
        files(changed).prepare(setting)

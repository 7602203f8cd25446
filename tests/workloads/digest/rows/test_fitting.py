"""Generated rows get the values by which statements of a log find as many rows as they did."""

from __future__ import annotations

import re

import pytest

from pytest_dbcluster.workloads.digest.digest_directory import write_digest
from tests.workloads.digest.logs import BEGIN, slow, write

SCHEMA = """\
CREATE TABLE shelves (
    id INT AUTO_INCREMENT PRIMARY KEY, depth INT NOT NULL, open TINYINT(1) NOT NULL, hidden TINYINT(1) NOT NULL,
    title VARCHAR(40) NOT NULL, ends DATETIME NULL, parent INT NULL, kind ENUM('a', 'b', 'c') NOT NULL,
    FOREIGN KEY (parent) REFERENCES shelves (id)
);
CREATE TABLE boxes (code VARCHAR(9) PRIMARY KEY, size INT NOT NULL);
CREATE TABLE extras (id INT PRIMARY KEY, shelf INT NOT NULL, FOREIGN KEY (shelf) REFERENCES shelves (id));
"""
WHOLE = [("SELECT id FROM shelves", {"sent": 40, "examined": 40})] * 30  # the table has 40 rows


@pytest.fixture
def files(tmp_path):
    """``files(statements)``: the files of a digest; each statement is in the log 30 times."""

    def files(*statements):
        log = write(tmp_path / "slow.log", slow([*WHOLE, *(each for one in statements for each in [one] * 30)]))
        schema = write(tmp_path / "schema.sql", SCHEMA)
        return write_digest(log, schema, tmp_path / "shop", keep_literals=False, progress=lambda line: None)[2]

    return files


def found(where, sent):
    """A search of the log."""
    return f"SELECT id FROM shelves WHERE {where}", {"sent": sent, "examined": 40}


@pytest.mark.parametrize(
    ("searches", "expected"),
    [
        ([found("depth <= 1", 10)], "depth = CASE WHEN id * 7919 % 40 < 10 THEN 1 ELSE 2 END"),
        ([found("depth > 3", 10)], "depth = CASE WHEN id * 7919 % 40 < 10 THEN 4 ELSE 3 END"),
        ([found("depth <= 1", 40)], "depth = 1"),
        ([found("depth <= 1", 0)], "depth = 2"),
        ([found("hidden = 1", 0), found("hidden = 0", 40)], "hidden = 0"),
        ([found("hidden = 1", 0)], "hidden = 0"),
        ([found("depth <= 1 AND open = 1", 10), found("open = 1", 40)],
         "depth = CASE WHEN id * 7919 % 40 < 10 THEN 1 ELSE 2 END, open = 1"),
        ([found("depth = 1 AND open = 1", 10), found("depth = 2 AND open = 1", 20)],
         "depth = CASE WHEN id * 7919 % 40 < 20 THEN 2 WHEN id * 7919 % 40 < 30 THEN 1 ELSE 3 END, "
         "open = CASE WHEN id * 7919 % 40 < 30 THEN 1 ELSE 0 END"),
        ([found("parent IS NULL", 10)], "parent = CASE WHEN id * 7919 % 40 < 10 THEN NULL ELSE parent END"),
        ([found("parent IS NOT NULL", 0)], "parent = NULL"),
        ([found("kind = 'b'", 30)], "kind = CASE WHEN id * 7919 % 40 < 30 THEN :kind_1 ELSE 'a' END"),
        ([found("title = 'secret'", 4)], "title = CASE WHEN id * 7919 % 40 < 4 THEN :title_1 ELSE title END"),
    ],
)  # fmt: skip
def test_as_many_rows_meet_a_condition_as_the_log_found(files, searches, expected):
    """Each by itself, and several together."""
    assert f"UPDATE shelves SET {expected};\n" in files(*searches)["fit.sql"]


def test_times_that_are_not_over_are_in_the_future(files):
    """So that a later run finds these rows too."""
    text = files(("SELECT id FROM shelves WHERE ends > '2023-11-14 22:13:20'", {"sent": 10, "time": BEGIN}))["fit.sql"]

    assert "ends = CASE WHEN id * 7919 % 40 < 10 THEN '2037-01-01' ELSE ends END;" in text


@pytest.mark.parametrize(
    "where",
    ["title LIKE '%lamp%' OR title LIKE 'lamp%'", "title LIKE '%lamp%'", "depth <= 1 OR depth > 7", "depth < 900000"],
)
def test_other_conditions_change_no_row(files, where):
    """Patterns, alternatives, and large numbers."""
    assert "fit.sql" not in files(found(where, 7))


def test_what_a_limit_hides_is_not_known(files):
    """The rows of a full page may be some of many; those of a page with room are all."""
    assert "fit.sql" not in files(found("depth <= 1 LIMIT 10", 10))
    assert "< 9 THEN 1 ELSE 2 END" in files(found("depth <= 1 LIMIT 10", 9))["fit.sql"]


def test_texts_by_which_one_row_is_found_are_numbered(files):
    """Although they have no key."""
    searches = [found(f"title LIKE 'lamp {number}'", 1) for number in range(30)]
    made = files(*searches)

    assert "UPDATE shelves SET title = CONCAT('title', 1 + (id - 1) % 40);" in made["fit.sql"]
    assert "\\set title concat('title', random(1, 40))\n" in made["select_shelves.sql"]
    assert "lamp" not in "".join(made.values())


def test_keys_that_were_not_found_are_not_found(files):
    """As often as in the log."""
    searches = [
        (f"SELECT size FROM boxes WHERE code = 'box{number}'", {"sent": int(number % 4 > 0), "examined": 1})
        for number in range(40)
    ]
    text = files(*searches)["select_boxes.sql"]

    assert re.search(r"\\set code CASE WHEN random\(1, 1000\) <= 250 THEN 'none' ELSE concat\('code', .*\) END\n", text)


def test_tables_in_which_nothing_was_found_are_empty(files):
    """Also if only joins read them, whose other tables have rows."""
    join = "SELECT s.id FROM shelves s JOIN extras e ON e.shelf = s.id WHERE s.id = 5"
    manifest = files((join, {"sent": 0, "examined": 1}))["workload.toml"]

    assert "shelves = 40" in manifest
    assert "extras" not in manifest


def test_as_many_rows_refer_to_each_as_were_found(files):
    """If it is always the same number."""
    searches = [
        (f"SELECT id FROM extras WHERE shelf = {number + 1}", {"sent": 3, "examined": 3}) for number in range(40)
    ]
    made = files(*searches)

    assert "extras = 120" in made["workload.toml"]
    assert "UPDATE extras SET shelf = 1 + (id - 1) % 40;" in made["fit.sql"]

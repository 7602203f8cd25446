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
CREATE TABLE extras (
    id INT PRIMARY KEY, shelf INT NOT NULL, size INT NOT NULL, FOREIGN KEY (shelf) REFERENCES shelves (id)
);
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
    ("where", "expected"),
    [
        ("depth = 1 OR hidden = 1", "depth = CASE {7} THEN 1 ELSE 0 END, hidden = CASE {7} THEN 1 ELSE 0 END"),
        ("depth = 1 OR depth = 2", "depth = CASE {4} THEN 1 {7} THEN 2 ELSE 3 END"),
        ("depth IN (1, 2)", "depth = CASE {4} THEN 1 {7} THEN 2 ELSE 3 END"),
        ("depth BETWEEN 2 AND 4", "depth = CASE {7} THEN 2 ELSE 5 END"),
        ("(depth < 2 OR parent IS NULL) AND open = 1",
         "depth = CASE {7} THEN 1 ELSE 2 END, open = CASE {7} THEN 1 ELSE 0 END, "
         "parent = CASE {7} THEN NULL ELSE parent END"),
        ("title LIKE '%lamp%'",
         "title = CASE {7} THEN REPLACE(:title_1, '%', '') ELSE IF(title LIKE :title_1, '', title) END"),
    ],
)  # fmt: skip
def test_alternatives_and_patterns_are_met_as_often(files, where, expected):
    """Values of one column share the rows; the rows of different columns are the same ones."""
    made = files(found(where, 7))
    parts = re.sub(r"{(\d)}", r"WHEN id * 7919 % 40 < \1", expected)

    assert f"UPDATE shelves SET {parts};\n" in made["fit.sql"]
    assert "not fitted" not in made["digest.md"]
    assert "lamp" not in "".join(made.values())


def test_an_alternative_keeps_the_rows_that_it_needs_alone(files):
    """The other one gets the rest."""
    text = files(found("depth = 1", 10), found("depth = 1 OR depth = 2", 30))["fit.sql"]

    assert "depth = CASE WHEN id * 7919 % 40 < 20 THEN 2 WHEN id * 7919 % 40 < 30 THEN 1 ELSE 3 END;" in text


EXTRAS = ("SELECT id FROM extras", {"sent": 120, "examined": 120})


@pytest.mark.parametrize(
    ("rest", "sent", "share"),
    [
        ("JOIN shelves s ON s.id = e.shelf WHERE s.open = 1", 30, 10),
        ("JOIN shelves s ON s.id = e.shelf AND s.open = 1 WHERE s.id = 5", 2, 27),
        (", shelves s WHERE s.id = e.shelf AND s.open = 1 AND e.shelf = 7", 3, 40),
    ],
)
def test_a_join_finds_as_many_rows(files, rest, sent, share):
    """Of 120 extras on 40 shelves: 3 for each shelf."""
    made = files(EXTRAS, (f"SELECT e.id FROM extras e {rest}", {"sent": sent, "examined": 120}))
    parts = "1" if share == 40 else f"CASE WHEN id * 7919 % 40 < {share} THEN 1 ELSE 0 END"

    assert f"UPDATE shelves SET open = {parts};\n" in made["fit.sql"]
    assert "not fitted" not in made["digest.md"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("SELECT id FROM shelves WHERE depth < 900000", "generated values of depth stay as they are"),
        ("SELECT id FROM shelves WHERE NOT (depth = 1)", "NOT ( depth = ? ) is not analysed"),
        ("SELECT COUNT(*) FROM shelves WHERE depth = 1", "it returns one row, whatever it finds"),
        ("SELECT DISTINCT title FROM shelves WHERE depth = 1", "GROUP BY or DISTINCT hides how many rows it finds"),
        ("SELECT id FROM shelves WHERE depth = 1 LIMIT 7", "LIMIT hides how many rows it would find"),
        ("SELECT id FROM shelves WHERE ends > '2020-01-01'",
         "ends is compared with another time than that of the statement"),
        ("SELECT id FROM shelves WHERE id > 5 AND depth = 1 LIMIT 20",
         "several keys or a range of keys beside other conditions"),
        ("SELECT e.id FROM extras e JOIN shelves s ON s.id = e.shelf WHERE s.open = 1 AND e.size = 2",
         "conditions on several tables: extras, shelves"),
        ("SELECT e.id FROM extras e JOIN boxes b ON b.size = e.size WHERE e.size = 2", "size and size have no key"),
        ("SELECT e.id FROM extras e LEFT JOIN shelves s ON s.id = e.shelf WHERE e.size = 2",
         "an outer join is not analysed"),
        ("SELECT id FROM shelves WHERE id = 3 OR depth = 1", "OR joins the key id with another condition"),
    ],
)  # fmt: skip
def test_a_statement_that_is_not_fitted_is_named(files, statement, reason):
    """With its text, in which no value of the log is."""
    made = files(EXTRAS, ("SELECT size FROM boxes WHERE code = 'b'", {}), (statement, {"sent": 7, "examined": 40}))
    (line,) = [line for line in made["digest.md"].splitlines() if line.endswith("``")]

    assert "\n## Conditions that are not fitted\n" in made["digest.md"]
    assert re.fullmatch(rf"- select_\w+\.sql: {re.escape(reason)}: ``SELECT .*``", line)
    assert re.sub(r"'[^']*'|(?<!\w)\d+", "?", statement) in line


def test_searches_by_keys_need_no_fit(files):
    """They find rows by values that generated rows have."""
    made = files(
        *[found(f"id = {number} OR id = {number + 1}", 2) for number in range(1, 5)],
        *[found(f"id BETWEEN {number} AND {number + 9}", 10) for number in range(1, 5)],
        ("SELECT id FROM extras WHERE shelf = 3", {"sent": 3, "examined": 3}),
        ("SELECT shelf, COUNT(*) FROM extras WHERE id < 9 GROUP BY shelf", {"sent": 3, "examined": 8}),
        found("title IS NOT NULL", 40),
    )

    assert "fitted" not in made["digest.md"]


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

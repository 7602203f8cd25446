"""Data of SQL files: rows of CSV and TSV, dumps, generated rows; and data that do not fit the schema."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql import SQLFiles, tables
from pytest_dbcluster.workloads.workload import Setting
from tests.support.dumps import packed
from tests.workloads.sql.directories import directory

BROWSE = "SELECT 1;"
NAMES = "CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(20), born DATE, score DECIMAL(5, 2));"
SMALL = {"workload.toml": "", "schema.sql": NAMES, "browse.sql": BROWSE}


@pytest.fixture
def stored(setting, files):
    """``stored({"data/names.csv": ...})``: the rows of the table ``names`` after loading."""

    def stored(changed, statement="SELECT * FROM names ORDER BY id"):
        workload = files({**SMALL, **changed}, name=f"{len(changed)}{abs(hash(str(changed)))}/shop")
        workload.prepare(setting)
        return setting.cluster.nodes[0].batch([f"USE {workload.database}", statement])[1]

    return stored


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("names.csv", 'id,name,born,score\n1,Ann,2020-01-31,1.5\n2,"Bo, ""B""\n",\\N,\\N\n3,,\\N,0\n'),
        ("names.csv", '1,Ann,2020-01-31,1.5\n\n2,"Bo, ""B""\n",\\N,\\N\n3,,\\N,0\n'),
        ("names.csv", 'SCORE,id,name\n1.5,1,Ann\n\\N,2,"Bo, ""B""\n"\n0,3,\n'),
        ("names.tsv", '1\tAnn\t2020-01-31\t1.5\r\n2\tBo, "B"\\n\t\\N\t\\N\r\n3\t\t\\N\t0\r\n'),
        ("names.tsv", '1\tAnn\t2020-01-31\t1.5\n2\tBo, "B"\\\n\t\\N\t\\N\n3\t\t\\N\t0\n'),
    ],
)
def test_rows_of_files_are_those_of_the_table(stored, name, text):
    r"""With a line of names or without, in quotes or with escapes; ``\N`` is NULL."""
    rows = stored({f"data/{name}": text})

    assert [(row[0], row[1], row[3] and float(row[3])) for row in rows] == [
        (1, "Ann", 1.5),
        (2, 'Bo, "B"\n', None),
        (3, "", 0),
    ]
    assert str(rows[0][2]) in ("2020-01-31", "None")


@pytest.mark.parametrize("text", ["it's", "\x1f", "a\x1f'b", "\\\\x", "'", "''", "\\'", "\x00'", "ü\t'"])
def test_any_character_may_be_in_a_value(stored, text):
    """Quotes, backslashes and control characters, beside a value without any."""
    quoted = text.replace('"', '""')
    rows = stored({"data/names.csv": f'1,"{quoted}",\\N,\\N\n2,"{quoted}",2020-01-01,1\n'}, "SELECT name FROM names")

    assert rows == [(text,), (text,)]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_files_may_be_compressed(setting, files, tmp_path, ending):
    """As TABLE.csv.gz and TABLE.csv.zst."""
    workload = files({**SMALL, "data/names.csv": "1,a,\\N,\\N\n"}, name="plain/shop")
    name = f"data/names.csv{ending}"
    path = directory(tmp_path / "packed" / "shop", {**SMALL, name: packed(b"5,b,\\N,\\N\n" * 2, name)})
    other = SQLFiles(path, threads=1)
    with pytest.raises(ConfigError, match=rf"^shop/data/names\.csv\{ending}, lines 1 to 2: .* Duplicate entry '5'"):
        other.prepare(setting)

    (path / name).write_bytes(packed(b"5,b,\\N,\\N\n", name))
    other = SQLFiles(path, threads=1)
    other.prepare(setting)
    assert setting.cluster.nodes[0].query(f"SELECT id, name FROM {other.tables[0]}") == [(5, "b")]
    assert other.data_set != workload.data_set


def test_more_rows_than_one_statement_takes_are_there(stored):
    """All of them, once."""
    text = "".join(f"{number},{'x' * (number % 20)},\\N,\\N\n" for number in range(12_000))

    assert stored({"data/names.csv": text}, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(LENGTH(name)) FROM names") == [
        (12_000, 12_000, sum(number % 20 for number in range(12_000)))
    ]


def test_a_file_of_sql_makes_the_data(stored):
    """With the variables of workload.toml. A dump makes its tables too, and what follows runs behind it."""
    rows = stored(
        {
            "workload.toml": 'after_load = ["triggers.sql"]\n[variables]\nfirst = 5\nname = "it\'s"\n',
            "schema.sql": None,
            "generate.sql": f"/*!40101 SET NAMES utf8mb4 */;\n{NAMES}\nINSERT INTO names (id, name) VALUES\n"
            "(:first, :name), (:first + 1, ':first');\n",
            "triggers.sql": "DELIMITER //\nCREATE TRIGGER t BEFORE INSERT ON names FOR EACH ROW BEGIN\n"
            "SET NEW.score = 7; END//\nDELIMITER ;\nINSERT INTO names (id) VALUES (9);\n",
        },
        "SELECT id, name, CAST(score AS INT) FROM names ORDER BY id",
    )

    assert rows == [(5, "it's", None), (6, ":first", None), (9, None, 7)]


TYPES = """\
CREATE TABLE parents (id INT PRIMARY KEY, code CHAR(8) UNIQUE, day DATE UNIQUE);
CREATE TABLE kinds (
    a BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, b TINYINT(1), c TINYINT, d SMALLINT, e DECIMAL(6, 2), f DOUBLE,
    g CHAR(3), h TEXT, i DATE, j DATETIME(3), k TIMESTAMP NULL, l TIME, m YEAR, n ENUM('x', 'it''s'), o JSON, p BLOB,
    q BIT(1), r VARBINARY(9), parent INT NOT NULL, s INT AS (d + 1), FOREIGN KEY (parent) REFERENCES parents (id)
);
CREATE TABLE pairs (parent INT, other INT, note VARCHAR(9), PRIMARY KEY (parent, other),
    FOREIGN KEY (parent) REFERENCES parents (id), FOREIGN KEY (other) REFERENCES parents (id));
"""


def test_rows_are_generated_for_every_type(setting, files):
    """Keys count from 1, unique columns and pairs differ, and parents are there; equal numbers give equal rows."""
    changed = {
        "schema.sql": TYPES,
        "workload.toml": "rows = {pairs = 300, kinds = 200, parents = 50}\n",
        "browse.sql": BROWSE,
    }
    workload, node = files(changed), setting.cluster.nodes[0]
    workload.prepare(setting)
    sums = [node.query(f"CHECKSUM TABLE {table}") for table in workload.tables]
    kinds = node.query(
        "SELECT COUNT(*), MAX(a), COUNT(DISTINCT n), MIN(parent) >= 1 AND MAX(parent) <= 50, COUNT(DISTINCT i) > 50 "
        f"FROM {workload.database}.kinds"
    )
    pairs = node.query(f"SELECT COUNT(*), MAX(parent) <= 50 AND MAX(other) <= 50 FROM {workload.database}.pairs")
    workload.populate(setting)

    assert kinds == [(200, 200, 2, 1, 1)]
    assert pairs == [(300, 1)]
    assert sums == [node.query(f"CHECKSUM TABLE {table}") for table in workload.tables]


REFERRED = """\
CREATE TABLE countries (code CHAR(2) PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE, day DATE NOT NULL UNIQUE);
CREATE TABLE cities (
    id INT PRIMARY KEY, country CHAR(2) NOT NULL, twin VARCHAR(20), founded DATE NOT NULL, capital INT,
    FOREIGN KEY (country) REFERENCES countries (code), FOREIGN KEY (twin) REFERENCES countries (name),
    FOREIGN KEY (founded) REFERENCES countries (day), FOREIGN KEY (capital) REFERENCES cities (id)
);
CREATE TABLE mayors (country CHAR(2) NOT NULL, city INT NOT NULL UNIQUE, party ENUM('a', 'it''s') NOT NULL,
    UNIQUE (country, party), FOREIGN KEY (country) REFERENCES countries (code),
    FOREIGN KEY (city) REFERENCES cities (id));
"""
LOST = """\
SELECT (SELECT COUNT(*) FROM countries), (SELECT COUNT(DISTINCT country) FROM cities),
(SELECT COUNT(*) FROM cities JOIN countries ON code = country JOIN countries t ON t.name = twin
JOIN countries f ON f.day = founded JOIN cities c ON c.id = cities.capital),
(SELECT COUNT(*) FROM mayors JOIN countries ON code = country JOIN cities ON cities.id = city)"""


@pytest.mark.parametrize("count", [5, 60, 300])
def test_references_to_texts_and_dates_are_there(setting, files, count):
    """Also if a column is too short for its name and a number: then letters are digits too."""
    rows = f"rows = {{countries = {count}, cities = 2000, mayors = {min(2 * count, 500)}}}\n"
    changed = {"schema.sql": REFERRED, "workload.toml": rows, "browse.sql": BROWSE}
    workload = files(changed, name=f"of{count}/shop")
    workload.prepare(setting)
    found = setting.cluster.nodes[0].batch([f"USE {workload.database}", LOST])[1]

    assert found == [(count, count, 2000, min(2 * count, 500))]


def test_generated_rows_refer_to_those_of_files(setting, files):
    """Whatever their keys are; without any, a column that may be NULL is NULL."""
    changed = {
        "schema.sql": "CREATE TABLE kinds (id INT PRIMARY KEY, code VARCHAR(9) UNIQUE);\n"
        "CREATE TABLE none (id INT PRIMARY KEY);\n"
        "CREATE TABLE names (id INT PRIMARY KEY, kind INT NOT NULL, code VARCHAR(9) NOT NULL, other INT,\n"
        "FOREIGN KEY (kind) REFERENCES kinds (id), FOREIGN KEY (code) REFERENCES kinds (code),\n"
        "FOREIGN KEY (other) REFERENCES none (id));",
        "data/kinds.csv": "7,it's\n900,b\n",
        "workload.toml": "rows = {names = 100}\n",
        "browse.sql": BROWSE,
    }
    workload = files(changed)
    workload.prepare(setting)
    statement = "SELECT COUNT(*), COUNT(DISTINCT kind), COUNT(DISTINCT code), COUNT(other) FROM names"
    joined = "SELECT COUNT(*) FROM names JOIN kinds k ON k.id = kind JOIN kinds c ON c.code = names.code"
    _, counts, found = setting.cluster.nodes[0].batch([f"USE {workload.database}", statement, joined])

    assert counts == [(100, 2, 2, 0)]
    assert found == [(100,)]


def statistics(node, database):
    """What a server knows of the tables: rows, and different values of each index."""
    return node.query(
        "SELECT table_name, index_name, stat_name, stat_value FROM mysql.innodb_index_stats "
        f"WHERE database_name = '{database}' AND stat_name LIKE 'n\\_diff%' AND table_name NOT LIKE 'dbcluster%' "
        "ORDER BY 1, 2, 3"
    )


def test_statistics_are_those_of_all_rows(setting, files):
    """Directly after loading; the options of the server are as before."""
    options = "SELECT @@GLOBAL.innodb_stats_persistent_sample_pages, @@GLOBAL.innodb_stats_auto_recalc"
    node, before = setting.cluster.nodes[0], setting.cluster.nodes[0].query(options)
    schema = "CREATE TABLE names (id INT PRIMARY KEY, town INT NOT NULL, name CHAR(60), KEY (town));"
    workload = files({**SMALL, "schema.sql": schema, "workload.toml": "rows = {names = 20000}\n"})
    workload.prepare(setting)
    ((towns,),) = node.query(f"SELECT COUNT(DISTINCT town) FROM {workload.tables[0]}")

    assert [row[1:] for row in statistics(node, workload.database)] == [
        ("PRIMARY", "n_diff_pfx01", 20_000),
        ("town", "n_diff_pfx01", towns),
        ("town", "n_diff_pfx02", 20_000),
    ]
    assert node.query(options) == before


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"data/names.csv": "1,a,\\N\n"}, r"shop/data/names\.csv:1: 3 values, and 4 columns \(id, name, born, score\)"),
        (
            {"data/names.csv": "1,a,\\N,\\N\n2,b,\\N,\\N\n3,c,never,\\N\n"},
            r"shop/data/names\.csv:3: the rows do not fit the table: error 1292: Incorrect date value: 'never'",
        ),
        (
            {"data/names.csv": '1,"a\nb",\\N,\\N\n2,"c\nd",\\N,\\N\nx,c,\\N,\\N\n'},
            r"shop/data/names\.csv:5: the rows do not fit the table: error 1366: Incorrect integer value: 'x'",
        ),
        (
            {"data/names.csv": "1,a,\\N,\\N\n1,b,\\N,\\N\n"},
            r"shop/data/names\.csv, lines 1 to 2: the rows do not fit the table: error 1062: Duplicate entry '1'",
        ),
        ({"data/names.csv": '1,"a,\\N,\\N\n'}, r"shop/data/names\.csv:1: unexpected end of data"),
        ({"data/names.csv": ""}, r"shop/data/names\.csv: there is no row in this file"),
        ({"schema.sql": NAMES + "\nINSERT INTO nmes VALUES (1);"}, r"shop/schema\.sql:2:1: error 1146: Table '"),
        ({"schema.sql": NAMES.replace("DATE", "DTE")}, r"shop/schema\.sql:1:1: error (1064|4161): "),
        ({"generate.sql": "DELETE FROM names WHERE id = :nme;"}, r"shop/generate\.sql:1:30: unknown variable :nme"),
        (
            {"schema.sql": "CREATE TABLE names (id INT PRIMARY KEY, at POINT);", "workload.toml": "rows = {names = 5}"},
            r"rows: no values are generated for names\.at of type point: write data/names\.csv, or generate\.sql",
        ),
        (
            {"schema.sql": "CREATE TABLE names (code CHAR(1) PRIMARY KEY);", "workload.toml": "rows = {names = 32}"},
            r"rows: names\.code \(char\(1\)\) needs 32 different values, and there are 31: ask for fewer rows, or "
            r"write data/names\.csv",
        ),
        (
            {
                "schema.sql": "CREATE TABLE towns (id INT PRIMARY KEY);\nCREATE TABLE names (town INT NOT NULL UNIQUE, "
                "FOREIGN KEY (town) REFERENCES towns (id));",
                "workload.toml": "rows = {towns = 5, names = 6}",
            },
            r"names\.town \(int\(11\)\) needs 6 different values, and the table that it refers to has 5: ask for fewer",
        ),
        (
            {
                "schema.sql": "CREATE TABLE names (a ENUM('x', 'y'), b ENUM('x', 'y'), UNIQUE (a, b));",
                "workload.toml": "rows = {names = 5}",
            },
            r"rows: names has a unique index on \(a, b\) with room for 4 rows, and 5 are needed: ask for fewer, or "
            r"write data/names\.csv",
        ),
    ],
)  # fmt: skip
def test_data_that_do_not_fit_name_file_and_line(setting, files, changed, words):
    """And what the server says."""
    workload = files({**SMALL, **changed})
    with pytest.raises(ConfigError, match=words):
        workload.prepare(setting)


def cluster_of(setting, topology):
    """The lone server as a cluster of another topology."""
    return SimpleNamespace(spec=SimpleNamespace(topology=topology), writers=setting.cluster.writers)


@pytest.mark.parametrize("engine", ["MyISAM", "MEMORY", "Aria"])
def test_tables_that_are_not_replicated_are_refused(setting, files, engine):
    """On one server they are usable."""
    workload = files({**SMALL, "schema.sql": NAMES.replace(";", f" ENGINE={engine};")})
    workload.prepare(setting)

    for topology in ("galera", "group_replication"):
        with pytest.raises(ConfigError, match=rf"table names has engine {engine}, and {topology} replicates InnoDB"):
            tables.refuse_unfit(cluster_of(setting, topology), workload.database)
    tables.refuse_unfit(cluster_of(setting, "async_replication"), workload.database)


def test_group_replication_needs_primary_keys(setting, files):
    """The table is named; other topologies take it."""
    workload = files({**SMALL, "schema.sql": "CREATE TABLE names (id INT, name VARCHAR(9));"})
    workload.prepare(setting)

    with pytest.raises(ConfigError, match="table names has no primary key, and group_replication refuses writes"):
        tables.refuse_unfit(cluster_of(setting, "group_replication"), workload.database)
    tables.refuse_unfit(cluster_of(setting, "galera"), workload.database)


class StrictNode:
    """A node whose server has a value of pxc_strict_mode."""

    def __init__(self, node, value):
        self.node, self.value, self.dialect = node, value, dialect("pxc", "8.4.6")

    def __getattr__(self, name):
        return getattr(self.node, name)

    def pairs(self, statement):
        """The variable that is asked for."""
        assert statement == "SHOW GLOBAL VARIABLES LIKE 'pxc_strict_mode'"
        return {"pxc_strict_mode": self.value}


@pytest.mark.parametrize("value", ["ENFORCING", "MASTER", "PERMISSIVE", "DISABLED"])
def test_strict_mode_needs_primary_keys(setting, files, value):
    """A unique key without NULL serves as one, as in the tables of mysqlslap; other modes take any table."""
    created = "CREATE TABLE names (id SERIAL, name VARCHAR(9)); CREATE TABLE logs (id INT, UNIQUE (id));"
    workload = files({**SMALL, "schema.sql": created})
    workload.prepare(setting)
    node = StrictNode(setting.cluster.writers[0], value)
    cluster = SimpleNamespace(spec=SimpleNamespace(topology="galera"), writers=[node])

    if value in ("ENFORCING", "MASTER"):
        with pytest.raises(
            ConfigError, match=f"table logs has no primary key, and servers with pxc_strict_mode={value}"
        ):
            tables.refuse_unfit(cluster, workload.database)
    tables.refuse_unfit(cluster, workload.database, ["names"])
    if value == "PERMISSIVE":
        tables.refuse_unfit(cluster, workload.database)


@pytest.fixture
def on_galera(galera2, client, tmp_path, said):
    """``on_galera({"schema.sql": ...})``: a workload of these files, and two nodes for it."""
    made, setting = [], Setting(galera2, client, galera2.nodes[0].release, "quick", said.append)

    def on_galera(changed):
        made.append(SQLFiles(directory(tmp_path / f"galera{len(made)}" / "shop", {**SMALL, **changed}), threads=1))
        return made[-1], setting

    yield on_galera
    for each in made:
        each.clean(setting)


@pytest.mark.parametrize(
    "files",
    [
        {"schema.sql": NAMES.replace(";", " ENGINE=MyISAM;"), "data/names.csv": "1,a,\\N,\\N\n"},
        {
            "schema.sql": None,
            "dump.sql": NAMES.replace(";", " ENGINE=Aria;") + "\nINSERT INTO names (id) VALUES (1);",
        },
        {
            "schema.sql": None,
            "dump.sql": "CREATE TABLE other (id INT PRIMARY KEY);\nINSERT INTO other VALUES (1);\n"
            "CREATE TABLE names LIKE other;\nALTER TABLE names ENGINE=MEMORY;\nINSERT INTO names VALUES (1);",
        },
    ],
)
def test_galera_refuses_tables_before_their_rows(on_galera, files):
    """Between CREATE TABLE and the first INSERT into the table; both nodes have it without a row."""
    workload, setting = on_galera(files)
    with pytest.raises(ConfigError, match=r"table names has engine \w+, and galera replicates InnoDB tables only"):
        workload.prepare(setting)

    assert setting.cluster.settle(60), setting.cluster.backlog()
    for node in setting.cluster.nodes:
        assert node.query(f"SELECT COUNT(*) FROM {workload.database}.names") == [(0,)]


def test_galera_takes_tables_without_a_key_and_says_so(on_galera, said):
    """Inserts, updates and deletes reach the other node; a line of progress says what such a table costs."""
    statements = (
        "INSERT INTO names VALUES (1, 'a')",
        "UPDATE names SET name = 'b' WHERE id = 2",
        "DELETE FROM names WHERE id = 3",
    )
    files = {
        "schema.sql": "CREATE TABLE names (id INT, name VARCHAR(9));",
        "workload.toml": 'reset = "none"\n',
        "data/names.csv": "2,a\n3,a\n3,b\n",
        "browse.sql": ";\n".join(statements),
    }
    workload, setting = on_galera(files)
    workload.prepare(setting)
    workload.run(setting)
    assert setting.cluster.settle(60), setting.cluster.backlog()
    setting.cluster.check(workload.tables)

    assert [line for line in said if "table names has no primary key: " in line] != []
    for node in setting.cluster.nodes:
        assert node.query(f"SELECT COUNT(*), MAX(name) FROM {workload.database}.names WHERE id > 1") == [(1, "b")]


def test_nodes_have_equal_statistics(galera2, client, tmp_path):
    """If the tables are loaded into a running cluster, which is larger than what a server samples."""
    from pytest_dbcluster.workloads.sql import SQLFiles
    from pytest_dbcluster.workloads.workload import Setting

    schema = "CREATE TABLE names (id INT PRIMARY KEY, town INT NOT NULL, name CHAR(200), KEY (town), KEY (name));"
    changed = {**SMALL, "schema.sql": schema, "workload.toml": "rows = {names = 20000}\n"}
    workload = SQLFiles(directory(tmp_path / "shop", changed), threads=1)
    setting = Setting(galera2, client, galera2.nodes[0].release, "quick", lambda line: None)
    try:
        workload.populate(setting)
        found = [statistics(node, workload.database) for node in galera2.nodes]
    finally:
        workload.clean(setting)

    assert found[0][0][3] == 20_000
    assert found[0] == found[1]


def test_the_data_set_depends_on_what_fills_the_tables(tmp_path):
    """On files, numbers of rows, and on variables only if they are used for the data."""

    def data_set(number, changed, **fields):
        return SQLFiles(directory(Path(tmp_path) / str(number) / "shop", {**SMALL, **changed}), **fields).data_set

    plain = data_set(0, {})
    generated = {"generate.sql": "INSERT INTO names (id) VALUES (:id);", "workload.toml": "variables = {id = 1}"}
    seen = [
        plain,
        data_set(1, {"data/names.csv": "1,a,\\N,\\N"}),
        data_set(2, {"data/names.csv": "2,a,\\N,\\N"}),
        data_set(3, {"workload.toml": "rows = {names = 5}"}),
        data_set(4, {"workload.toml": 'database = "other"'}),
        data_set(5, generated),
        data_set(6, generated, variables={"id": 2}),
    ]
    assert len(set(seen)) == len(seen)
    assert plain == data_set(7, {"browse.sql": "SELECT 2;", "workload.toml": "variables = {id = 1}\nattempts = 5"})

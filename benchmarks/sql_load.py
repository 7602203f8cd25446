"""Seconds in which SQL files are loaded, relative to what the server's own ways take, alternating.

    python benchmarks/sql_load.py [--runs 5] [--rows 200000]

A CSV: the INSERTs of SQLFiles, and LOAD DATA LOCAL INFILE of the same file into the same table. A dump of this table:
SQLFiles, and the release's client that reads the dump. One server on this machine that does not wait for its disk.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from pathlib import Path

import mysql.connector

from benchmarks import ratios, stage, tpcc_peers
from pytest_dbcluster import SQLFiles
from pytest_dbcluster.workloads.workload import Setting

DATABASE = "sql_load_peer"
# INSERTs have an error for each row that does not fit, LOAD DATA LOCAL only a warning.
CSV_TARGET, DUMP_TARGET = 2.5, 1.75
SCHEMA = """\
CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, born DATETIME, score DECIMAL(9, 2),
    note VARCHAR(120), KEY (name));
"""
FORMAT = """\
LOAD DATA LOCAL INFILE '{}' INTO TABLE people CHARACTER SET utf8mb4
FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY ''"""


def write_rows(path: Path, rows: int) -> None:
    """A CSV with so many rows of about 100 bytes."""
    drawn = random.Random(35)
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, rows + 1):
            note = "".join(drawn.choices("abcdefghijklmnop ,'", k=60))
            file.write(f'{number},name{number},2024-03-05 10:11:12,{drawn.randrange(10**6) / 100},"{note}"\n')


def directory(path: Path) -> Path:
    """A directory of SQL files without data."""
    path.mkdir()
    (path / "read.sql").write_text("SELECT COUNT(*) FROM people;\n")
    return path


def populate(path: Path, setting: Setting) -> float:
    """The seconds in which SQLFiles loads a directory."""
    workload = SQLFiles(path)
    took = ratios.seconds(lambda: workload.populate(setting))
    stage.tell(f"SQLFiles, {path.name}: {took:.2f} s")
    return took


def load_data(file: Path, setting: Setting) -> float:
    """The seconds of CREATE TABLE and LOAD DATA LOCAL INFILE."""
    node = setting.cluster.nodes[0]
    empty(setting)
    to = node.endpoint
    connection = mysql.connector.connect(
        host=to.host, port=to.port, user=to.user, password=to.password, database=DATABASE, use_pure=True,
        allow_local_infile=True, autocommit=True, ssl_disabled=not to.tls, charset="utf8mb4",
        collation="utf8mb4_general_ci",
    )  # fmt: skip
    cursor = connection.cursor()

    def load() -> None:
        cursor.execute(SCHEMA)
        cursor.execute(FORMAT.format(file))

    took = ratios.seconds(load)
    connection.close()
    stage.tell(f"LOAD DATA: {took:.2f} s")
    return took


def empty(setting: Setting) -> None:
    """Make the database of the server's own ways anew."""
    for statement in (f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}"):
        setting.cluster.nodes[0].query(statement)


def client_command(setting: Setting, program: str, *options: str) -> tuple[list[str], dict[str, str]]:
    """The command of a client of the release, and its environment."""
    to, release = setting.cluster.nodes[0].endpoint, setting.release
    given = [f"--{name}={value}" for name, value in release.client_options.items()]
    place = ["--protocol=tcp", f"--host={to.host}", f"--port={to.port}", f"--user={to.user}"]
    environment = {**os.environ, **release.environment, "MYSQL_PWD": to.password}
    return [str(release.program(program)), "--no-defaults", *given, *place, *options], environment


def read_dump(file: Path, setting: Setting) -> float:
    """The seconds in which the client reads a dump."""
    empty(setting)
    command, environment = client_command(setting, "mariadb", DATABASE)
    with file.open("rb") as text:
        took = ratios.seconds(lambda: subprocess.run(command, stdin=text, env=environment, check=True))
    stage.tell(f"the client reads the dump: {took:.2f} s")
    return took


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "loads of each kind")
    parser.add_argument("--rows", type=ratios.positive, default=200_000, metavar="N", help="rows (default 200000)")
    arguments = parser.parse_args()
    print("| loading | SQLFiles, s | the server's own, s | ratio | |\n|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as name,
        tpcc_peers.servers(tpcc_peers.SERVER.with_options(innodb_flush_log_at_trx_commit="0")) as comparison,
    ):
        setting, csv = comparison.setting, directory(Path(name) / "csv")
        (csv / "data").mkdir()
        (csv / "schema.sql").write_text(SCHEMA)
        rows = csv / "data" / "people.csv"
        write_rows(rows, arguments.rows)
        ours, theirs = ratios.alternate(
            arguments.runs, lambda: populate(csv, setting), lambda: load_data(rows, setting)
        )
        print(ratios.line("a CSV; LOAD DATA LOCAL INFILE", ours, theirs, CSV_TARGET), flush=True)
        dumps = directory(Path(name) / "dump")
        command, environment = client_command(setting, "mariadb-dump", DATABASE)
        with (dumps / "dump.sql").open("wb") as file:
            subprocess.run(command, stdout=file, env=environment, check=True)
        ours, theirs = ratios.alternate(
            arguments.runs, lambda: populate(dumps, setting), lambda: read_dump(dumps / "dump.sql", setting)
        )
        print(ratios.line("a dump; the client mariadb", ours, theirs, DUMP_TARGET), flush=True)


if __name__ == "__main__":
    ratios.run(main)

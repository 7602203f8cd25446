"""Client CPU per transaction of SQL files, relative to sysbench's own scripts with the same statements, alternating.

    python benchmarks/sql_client.py [--runs 5] [--seconds 2] [--threads 1 16] [--scripts oltp_point_select ...]

One server on this machine that does not wait for its disk (flush=0). Both sides use equal rows and uniform ids, as text
and prepared. The first line is the time in which 50 files of 14 lines each are read and compiled.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import ratios, stage, tpcc_peers
from benchmarks.tpcc_peers import Comparison
from pytest_dbcluster import SQLFiles, SysBench
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads.sysbench import SCHEMA
from pytest_dbcluster.workloads.workload import Workload

COMPILE, FILES = 0.05, 50  # seconds for so many files
TARGETS = {True: 1.15, False: 1.15}  # by whether the statements are prepared
ROWS = 10_000
TABLE = """\
CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '',
    pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k));
"""
GROUPS = "-".join(["###########"] * 10)
POINT = "\\set id random(1, :rows)\nSELECT c FROM sbtest1 WHERE id = :id;\n"
RANGES = "".join(
    f"\\set low random(1, :rows)\n\\set high :low + 99\nSELECT {what} BETWEEN :low AND :high{order};\n"
    for what, order in (
        ("c FROM sbtest1 WHERE id", ""),
        ("SUM(k) FROM sbtest1 WHERE id", ""),
        ("c FROM sbtest1 WHERE id", " ORDER BY c"),
        ("DISTINCT c FROM sbtest1 WHERE id", " ORDER BY c"),
    )
)
CHANGES = f"""\
\\set id random(1, :rows)
UPDATE sbtest1 SET k = k + 1 WHERE id = :id;
\\set id random(1, :rows)
\\set c random_digits('{GROUPS}')
UPDATE sbtest1 SET c = :c WHERE id = :id;
\\set id random(1, :rows)
\\set k random(1, :rows)
\\set c random_digits('{GROUPS}')
\\set pad random_digits('{"-".join(["###########"] * 5)}')
DELETE FROM sbtest1 WHERE id = :id;
INSERT INTO sbtest1 (id, k, c, pad) VALUES (:id, :k, :c, :pad);
"""
SCRIPTS = {
    "oltp_point_select": POINT,
    "oltp_read_only": f"BEGIN;\n{POINT * 10}{RANGES}COMMIT;\n",
    "oltp_read_write": f"BEGIN;\n{POINT * 10}{RANGES}{CHANGES}COMMIT;\n",
}


def directory(path: Path, text: str) -> Path:
    """A directory of SQL files with one transaction, on a copy of sysbench's table."""
    path.mkdir()
    (path / "schema.sql").write_text(TABLE)
    (path / "generate.sql").write_text(f"INSERT INTO sbtest1 SELECT * FROM {SCHEMA}.sbtest1;\n")
    (path / "workload.toml").write_text(f'reset = "none"\nvariables = {{rows = {ROWS}}}\n')
    (path / "transaction.sql").write_text(text)
    return path


def compile_seconds(path: Path) -> float:
    """The time in which FILES new files are read and compiled."""
    directory(path, POINT)
    for number in range(FILES):
        (path / f"t{number}.sql").write_text(f"-- {path} {number}\nBEGIN;\n{POINT}{CHANGES}COMMIT;\n")
    began = time.perf_counter()
    SQLFiles(path)
    return time.perf_counter() - began


def each(result: RunResult) -> float:
    """Client CPU microseconds per good transaction."""
    return 1e6 * (result.client_seconds or 0.0) / result.done


def one_round(comparison: Comparison, workload: Workload, name: str) -> Callable[[], float]:
    """A function that runs a round, and returns its client CPU per transaction."""

    def run() -> float:
        found = each(workload.run(comparison.setting))
        stage.tell(f"{name}: {found:.1f} us")
        return found

    return run


def row(
    comparison: Comparison, path: Path, script: str, threads: int, prepared: bool, runs: int, seconds: float
) -> str:
    """The table line of one script: medians of both sides, and the ratio pair by pair."""
    theirs = SysBench(
        script, size=ROWS, threads=threads, seconds=seconds, distribution="uniform", prepared=prepared, to="writer"
    )
    theirs.prepare(comparison.setting)
    ours = SQLFiles(path, threads=threads, seconds=seconds, prepared=prepared, to="writer")
    ours.prepare(comparison.setting)
    actions = [one_round(comparison, one, str(one)) for one in (ours, theirs)]
    mine, builtin = ratios.alternate(runs, *actions)
    found = ratios.ratio(mine, builtin)
    label = f"{script}, {threads} threads, {'prepared' if prepared else 'text'}"
    medians = " | ".join(f"{ratios.Figure.of(side).median:.1f}" for side in (builtin, mine))
    return f"| {label} | {medians} | {found} | {ratios.target_text(found.median, TARGETS[prepared])} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "pairs of rounds for each line")
    parser.add_argument("--seconds", type=tpcc_peers.seconds, default=2.0, metavar="S", help="of a round (default 2)")
    parser.add_argument("--threads", nargs="+", type=ratios.positive, default=[1, 16], metavar="N")
    parser.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=list(SCRIPTS), metavar="SCRIPT")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        times = [compile_seconds(Path(name) / f"files{number}") for number in range(arguments.runs)]
        taken = ratios.Figure.of([1000 * one for one in times])
        print(f"{FILES} files compiled in ms: {taken} | {ratios.target_text(taken.median, 1000 * COMPILE)}\n")
        print("| transactions | sysbench's script, client CPU us | SQL files | ratio | |\n|---|---|---|---|---|")
        with tpcc_peers.servers(tpcc_peers.SERVER.with_options(innodb_flush_log_at_trx_commit="0")) as comparison:
            for script in arguments.scripts:
                path = directory(Path(name) / script, SCRIPTS[script])
                for threads in arguments.threads:
                    for prepared in (False, True):
                        line = row(comparison, path, script, threads, prepared, arguments.runs, arguments.seconds)
                        print(line, flush=True)


if __name__ == "__main__":
    ratios.run(main)

"""Are made-up regressions found? A my.cnf that flushes at each commit by the gate, a slowed server by the history.

    python benchmarks/regressions.py [--runs 6] [--seconds 300] [--only gate|history]

The gate is ``scripts/compare_with_base.sh`` in a temporary repository, as the example workflow calls it. For the
history ``--runs`` healthy runs are measured first. Then one more, whose servers share the CPU with programs that use
all of it for as long as they run: both variants are slower then, and the ratio may be as before. Then one like the
first. A run takes about a minute. The machine should be idle: the more runs differ, the more
of them are needed (``--runs 10``).
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import ratios
from pytest_dbcluster.releases import find
from pytest_dbcluster.reporting.history import guard, history_file
from pytest_dbcluster.reporting.history.history_file import History

ROOT = Path(__file__).resolve().parents[1]
CNF = "my.cnf"
SUITE = """\
from pytest_dbcluster import ClusterSpec, MySQLSlap

ONE = ClusterSpec("standalone")
OTHER = ONE.with_options(innodb_spin_wait_delay=6).named("other")


def test_other_is_no_slower(measure):
    one, other = measure(MySQLSlap("key"), on=[ONE, OTHER])
    assert other.no_slower_than(one, by=0.1)
"""
THIEVES = 16  # for each CPU
# The shell becomes the server of a node, which has its own my.cnf; its children end after it.
THIEF = """case "$*" in *--defaults-file=*/my.cnf*)
    for _ in {thieves}; do (while kill -0 $$ 2>/dev/null; do :; done) & done ;; esac
"""


def _git(place: Path, *words: str) -> str:
    who = {f"GIT_{role}_{key}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    done = subprocess.run(["git", *words], cwd=place, env=os.environ | who, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def gate(place: Path, seconds: int, flush: Sequence[int]) -> tuple[int, str]:
    """The exit status and the sentence of the gate for a my.cnf of the base and one of the pull request."""
    (place / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "compare_with_base.sh", place / "scripts")
    (place / ".venv").symlink_to(sys.prefix)
    _git(place, "init", "--quiet")
    for value in flush:
        (place / CNF).write_text(f"[mysqld]\ninnodb_flush_log_at_trx_commit = {value}\n")
        _git(place, "add", CNF)
        _git(place, "commit", "--quiet", "--message", str(value))
    command = ["scripts/compare_with_base.sh", "HEAD~1", CNF, "result.md", "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1]


def slow_release(place: Path, thieves: int) -> str:
    """A release whose server starts so many programs that take the CPU from it, as a value of ``--db-release``."""
    entry = find.find("mariadb:10.11").bin.parent
    place.mkdir()
    for path in entry.iterdir():
        if path.name != "bin":
            (place / path.name).symlink_to(path)
    shutil.copytree(entry / "bin", place / "bin", symlinks=True)
    program = place / "bin" / "mariadbd"
    program.write_text(program.read_text().replace("exec ", f"{THIEF.format(thieves='. ' * thieves)}exec ", 1))
    return f"mariadb:10.11={place}"


def run(place: Path, *words: str) -> None:
    """Measure the suite once, and add it to the history; what it prints is progress."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "test_suite.py",
        "--db-history",
        "history.jsonl",
        "--db-budget",
        "20",
    ]
    subprocess.run([*command, *words], cwd=place, stdout=sys.stderr, check=False)


def judge(history: History) -> list[str]:
    """What the drift guard says about each run of a history, as it was when that run was the newest."""
    lines = []
    for number, entry in enumerate(history.entries, 1):
        found = guard.judge(History(history.entries[:number]), [entry.run])
        known = [one for one in found if one.drift.has_enough_runs]
        drifts = [f"{one.subject} {math.expm1(one.drift.change):+.0%}, t {one.drift.t:+.1f}" for one in known]
        limit = f", limit {found[0].drift.limit:.1f}" if found[0].drift.has_enough_runs else ""
        speeds = ", ".join(f"{name} {speed:.0f}/s" for name, speed in entry.medians.items())
        anchor = f"anchor {entry.anchor:.0f}/s" if entry.anchor else "no anchor"
        warned = " WARNS" if any(one.drift.warns for one in found) else ""
        lines.append(f"run {number}: {speeds}, {anchor}: {'; '.join(drifts) or 'too few earlier runs'}{limit}{warned}")
    return lines


def main() -> None:
    """Reads the command line and prints what gate and history say."""
    parser = ratios.arguments(__doc__, 6, "healthy runs before the slowed one")
    parser.add_argument(
        "--seconds", type=int, default=300, metavar="S", help="of a comparison of the gate (default 300)"
    )
    parser.add_argument("--only", choices=("gate", "history"), help="one of both")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if arguments.only != "history":
            status, sentence = gate(place / "gate", arguments.seconds, (2, 1))
            print(f"gate, flush 2 -> 1: exit status {status}: {sentence}", flush=True)
        if arguments.only != "gate":
            (place / "test_suite.py").write_text(SUITE)
            for _ in range(arguments.runs):
                run(place)
            run(place, "--db-release", slow_release(place / "slowed", THIEVES * (os.cpu_count() or 1)))
            run(place)
            print(*judge(history_file.read(place / "history.jsonl")), sep="\n")


if __name__ == "__main__":
    ratios.run(main)

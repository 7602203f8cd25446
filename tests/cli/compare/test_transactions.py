"""``dbcluster compare`` with SQL files on real servers: its table and its page have a row for each transaction."""

from __future__ import annotations

import re

import pytest

from tests.support.command import SHORT_COMPARISON, alone, dbcluster
from tests.workloads.sql.directories import directory

BROWSE = "\\set id random(1, :items)\n\\sleep 2 ms\nSELECT name, stock FROM items WHERE id = :id;\n"
SLEEP = 10  # ms in a sale
SELL = f"\\set id random(1, :items)\n\\sleep {SLEEP} ms\nUPDATE items SET stock = stock - 1 WHERE id = :id;\n"
ROW = re.compile(r"(p95:\w+) +([\d.]+) ms +([\d.]+) ms +([\d.]+)x (\(.*?\)) +compared \((\d+) % of the transactions")


def test_each_transaction_has_a_row_below_p95(tmp_path):
    """Each row has the p95 of its own transaction; one that is too rare in a round has no interval."""
    manifest = (
        'transactions = ["browse.sql@9", "sell.sql"]\nrows = {items = 100, sales = 10}\nvariables = {items = 100}\n'
    )
    shop = directory(tmp_path / "shop", {"workload.toml": manifest, "browse.sql": BROWSE, "sell.sql": SELL})
    for number in (1, 2):
        (tmp_path / f"flush_{number}.cnf").write_text(f"[mysqld]\ninnodb_flush_log_at_trx_commit = {number}\n")
    files = [f"--cnf={tmp_path / 'flush_1.cnf'}", f"--cnf={tmp_path / 'flush_2.cnf'}"]
    words = [*files, f"--workload={shop}/", "--threads=8", "--seconds=45", f"--results={tmp_path / 'results'}"]
    done = dbcluster("compare", *words, seconds=300, program=alone(tmp_path / "bin", SHORT_COMPARISON))

    assert done.returncode in (0, 3, 4), done.stderr
    rows = {found[1]: found.groups()[1:] for line in done.stdout.splitlines() if (found := ROW.search(line))}
    assert list(rows) == ["p95:browse", "p95:sell"], done.stdout
    (*browse, _, _, often), (*sell, _, interval, rarely) = rows.values()
    assert [int(often), int(rarely)] == pytest.approx([90, 10], abs=5)  # the weights, as drawn
    assert interval == "(no interval)"
    assert all(float(slow) > max(SLEEP, float(fast)) for fast, slow in zip(browse, sell, strict=True))
    page = (tmp_path / "results" / "index.html").read_text()
    assert all(name in page for name in rows)

"""``dbcluster init --workload`` and ``compare --workload`` on real servers, as a new user runs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.rounds import round_length
from tests.support import conftests

# A percentile needs 2 operations beyond it, so short rounds have enough.
FEW_OPERATIONS = """
from pytest_dbcluster.rounds import metrics

metrics.BEYOND = 2
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """What ``init --workload`` writes, with fewer rows, more orders, transactions that sleep and shorter rounds."""
    made = tmp_path_factory.mktemp("own") / "my_project"
    assert main.main(["init", str(made), "--workload", "shop/"]) == 0
    manifest = made / "shop" / "workload.toml"
    text = manifest.read_text().replace("000", "00").replace("browse.sql@70", "browse.sql@10")
    manifest.write_text(text.replace("history.sql@20", "history.sql@2"))
    for transaction in ("browse", "history", "order"):
        with (made / "shop" / f"{transaction}.sql").open("a") as file:
            file.write("\\sleep 8 ms\n")
    test = made / "test_shop.py"
    test.write_text(test.read_text().replace("threads=8", "threads=8, seconds=0.4"))
    quick = conftests.SHORT_TIMES + conftests.FEW_BLOCKS + FEW_OPERATIONS
    (made / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + quick)
    return made


@pytest.mark.thorough
def test_the_example_measures_one_transaction(project, monkeypatch):
    """The test that ``init`` writes claims the latency of an order, and its record has the digests of all files."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(project / "runs"))
    plain = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    words = ["test_shop.py", "-k", "order", "--db-max-pairs", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, *words], cwd=project, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    [record] = schema.read_claims(project / "reports" / "latest")
    waited = record.rounds["candidate"][0].outcome
    assert (record.metric, record.load) == ("p95:order", "sql shop t8 at 70 %")
    assert record.claim_id.endswith(f" | sql shop t8 at 70 % {record.content}")
    assert sorted(record.files["default"]) == [
        "shop/browse.sql", "shop/history.sql", "shop/order.sql", "shop/schema.sql", "shop/workload.toml"
    ]  # fmt: skip
    assert {"browse:3", "order:4", "order:7"} <= waited.statements.keys()
    assert waited.statements["order:7"].total >= waited.ledger.entries["order"].committed > 0


@pytest.mark.thorough
def test_compare_runs_a_directory(project, monkeypatch, capsys):
    """It loads the tables of the directory and answers for its transactions, even if the answer is open."""
    monkeypatch.chdir(project)
    for name in ("USUAL", "WARM_UP"):
        monkeypatch.setattr(round_length, name, round_length.SHORTEST)
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(project / "runs"))
    for name, value in (("current", 1), ("candidate", 2)):
        (project / f"{name}.cnf").write_text(f"[mysqld]\ninnodb_flush_log_at_trx_commit = {value}\n")
    files = ["--cnf", "current.cnf", "--cnf", "candidate.cnf"]
    code = main.main(["compare", *files, "--workload", "shop/:order.sql", "--threads", "1", "--seconds", "10"])
    out, lines = capsys.readouterr()

    assert code in (0, 3, 4)
    assert "with data set sql shop " in lines
    assert "\nsql shop t1 of order " in out

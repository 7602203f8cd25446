"""``dbcluster compare`` of two my.cnf files on a real server: what it prints, writes and takes over."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support.command import SHORT_COMPARISON, alone, dbcluster
from tests.support.facts import missing
from tests.workloads.sql.directories import directory

# A transaction sleeps as long as its server's my.cnf says, so that the answers are clear and no core is busy.
BROWSE = "\\set id random(1, :items)\nDO SLEEP(@@GLOBAL.long_query_time);\nSELECT name FROM items WHERE id = :id;\n"
SLEEP = 20  # ms more in a sale
SELL = (
    f"\\set id random(1, :items)\n\\sleep {SLEEP} ms\nDO SLEEP(@@GLOBAL.long_query_time);\n"
    "UPDATE items SET stock = stock - 1 WHERE id = :id;\n"
)
MANIFEST = 'transactions = ["browse.sql@9", "sell.sql"]\nrows = {items = 100, sales = 10}\nvariables = {items = 100}\n'
ROW = re.compile(r"(p95:\w+) +([\d.]+) ms +([\d.]+) ms +([\d.]+)x (\(.*?\)) +compared \((\d+) % of the transactions")


@dataclasses.dataclass
class Compared:
    """A comparison of two files on a real server: its words, program, results and how it ended."""

    words: list[str]
    program: object
    results: object
    done: object


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison of throughput and p95, once for all tests."""
    place = tmp_path_factory.mktemp("compared")
    shop = directory(place / "shop", {"workload.toml": MANIFEST, "browse.sql": BROWSE, "sell.sql": SELL})
    for name, lines in {"current": "0.01\nport = 3306", "candidate": "0.005\nmax_connections = 151"}.items():
        (place / f"{name}.cnf").write_text(f"[mysqld]\nlong_query_time = {lines}\n")
    program, results = alone(place / "bin", SHORT_COMPARISON), place / "results"
    words = ["compare", *(f"--cnf={place / name}.cnf" for name in ("current", "candidate")), f"--workload={shop}/"]
    words += ["--threads=8", "--seconds=120", f"--results={results}", f"--trace={place / 'trace.json'}", "--why"]
    return Compared(words, program, results, dbcluster(*words, seconds=300, program=program))


def test_two_files_are_compared_on_a_real_server(compared):
    """A command reads both files, measures, names what differs, makes a page, and ends with a sentence and a code."""
    done, results = compared.done, compared.results

    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines[-1].startswith("candidate is no worse than current: ")
    assert any("concerns the host" in line or "concern the host" in line for line in lines)  # its port
    assert any(line.startswith("sql shop t8 ") for line in lines)
    differing = [line.split() for line in lines if line.startswith("long_query_time")]
    assert differing == [["long_query_time", "0.010000", "0.005000"]]
    assert "no difference: max_connections is 151 in both" in lines
    assert lines[-2] == f"report: {results}/index.html"
    assert [(test.test, test.outcome) for test in read_run(results).tests] == [
        ("dbcluster compare::sql shop t8", "holds")
    ]
    claims = schema.read_claims(results)
    assert {text for claim in claims for text in claim.data.values()} == {"about 1 MiB"}
    claimed = [(claim.kind, claim.metric) for claim in claims]
    assert claimed[:2] == [("no_slower_than", "goodput"), ("differs", "goodput")]


def test_each_transaction_has_a_row_below_p95(compared):
    """Each row shows the p95 of its transaction. A transaction with too few operations in a round has no interval."""
    lines = compared.done.stdout.splitlines()
    rows = {found[1]: found.groups()[1:] for line in lines if (found := ROW.search(line))}

    assert list(rows) == ["p95:browse", "p95:sell"], compared.done.stdout
    (*browse, _, _, often), (*sell, _, interval, rarely) = rows.values()
    assert [int(often), int(rarely)] == pytest.approx([90, 10], abs=5)  # the weights, as drawn
    assert interval == "(no interval)"
    assert all(float(slow) > max(SLEEP, float(fast)) for fast, slow in zip(browse, sell, strict=True))
    page = (compared.results / "index.html").read_text()
    assert all(name in page for name in rows)


def test_a_comparison_says_where_its_time_went(compared):
    """On standard error and in ``run.json``; each phase is in its trace."""
    names = {one["name"] for one in json.loads((compared.results.parent / "trace.json").read_text())}

    assert missing(compared.done.stderr, "where the time went: ", "starts ") == []
    assert {"starts", "stops"} <= read_run(compared.results).time_spent.keys()
    assert {"start", "prepare data", "form", "close", "page"} <= names


def test_extra_rounds_show_what_differs_on_the_servers(compared):
    """With ``--why``: after the answer about the throughput, from servers with performance_schema."""
    claims = [claim for claim in schema.read_claims(compared.results) if claim.metric == "goodput"]
    servers = [claim.servers for claim in claims]

    assert [one.reason for one in servers] == [""] * len(claims)
    assert all(one.statements[0].statement.startswith("do sleep") for one in servers)
    assert all(f"{claim.load}: {claim.servers.lines[0]}" in compared.done.stdout for claim in claims if claim.asserted)
    assert servers[:1] * len(servers) == servers


def test_a_comparison_goes_on_where_it_was(compared):
    """Claims of throughput and p95 are of one test that ended; ``--resume`` takes over answers of the same load."""
    answers, run = schema.read_claims(compared.results), read_run(compared.results)
    second = dbcluster(*compared.words, "--seconds=12", "--resume", seconds=300, program=compared.program)

    assert second.returncode == 0, second.stderr
    assert {claim.test for claim in answers} <= {test.test for test in run.tests}
    assert [test.outcome for test in run.tests if test.outcome == "cut short"] == []
    assert len(answers) >= 2
    assert second.stderr.count("taken over: ") == len(answers)
    assert [claim.claim_id for claim in schema.read_claims(compared.results)][: len(answers)] == [
        claim.claim_id for claim in answers
    ]

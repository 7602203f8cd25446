"""The pages of published measurements: a row for each claim, stored results, and the command that measures them."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import tomllib

import pytest

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.claim_id import bare
from pytest_dbcluster.reporting.page import words
from tests.support import conftests
from tests.support.command import ROOT
from tests.support.facts import missing
from tests.support.published import FLUSH, claim_of, module, stored
from tests.support.records import beside, record, undecided
from tests.support.results import results

ROW = re.compile(r"^\| `(.+)`, ((?:mysqlslap|sysbench).+?) \| (.+) \|$", re.MULTILINE)
MOST = 50_000  # bytes of a file of stored results

pytestmark = pytest.mark.usefixtures("extensions")


def page_of(known, into, work=FLUSH):
    """The text of a page with stored results."""
    document = tomllib.loads((ROOT / "fixtures" / "published" / f"{work}.toml").read_text())
    own = [claim for claim in known if claim.work == work]
    return module("published_pages").text_of(document, own, module("published_results").read(work, into))


def rows(text):
    """(claim, workload) -> the other cells of its row, by heading."""
    heads = module("published_pages").HEAD
    found = {}
    for claim, load, cells in ROW.findall(text):
        found[claim, load] = dict(zip(heads[1:], map(str.strip, cells.split(" | ")), strict=True))
    return found


def test_every_published_test_of_the_suites_has_a_row(known):
    """Each test that pytest selects by the mark has a claim; its row stands on the page of its work."""
    command = ["pytest", "suites", "-m", "published", "--collect-only", "-q", *conftests.PLAIN]
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=True)
    selected = {bare(line, "").partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    pages = {work: rows(page_of(known, ROOT / "nowhere", work)) for work in {claim.work for claim in known}}

    assert selected
    assert {claim.test for claim in known} == selected
    assert [claim for claim in known if (claim.text, claim.load) not in pages[claim.work]] == []


def test_every_published_work_and_table_has_a_claim_and_a_page(known):
    """The files of fixtures/published, their table numbers, and the pages are the same."""
    files = {path.stem: tomllib.loads(path.read_text()) for path in (ROOT / "fixtures" / "published").glob("*.toml")}
    columns = files[FLUSH]["columns"].values()
    pages = {path.stem for path in (ROOT / "docs" / "published").glob("*.md")} - {"index"}

    assert {claim.work for claim in known} == set(files) == pages
    assert {column["table"] for column in columns if "table" in column} == {
        claim.table for claim in known if claim.work == FLUSH
    }


def test_a_stored_claim_appears_beside_the_published_figure(known, tmp_path):
    """Its row has the published ratio, ours with the interval, verdict, pairs, release, machine and date."""
    claim = claim_of(known, "flush_2.beats(galera3)")
    made = record(faster=3.0, claim_id=claim.claim_id, provisioner="local")
    text = page_of(known, stored(known, tmp_path, made))
    seconds = tomllib.loads((ROOT / "fixtures" / "published" / f"{FLUSH}.toml").read_text())["columns"]

    assert rows(text)[claim.text, claim.load] == {
        "published": formatting.ratio(seconds["default"]["write"][0] / seconds["flush_2"]["write"][0]),
        "measured": f"{words.ratio(made)} (99.9 %: {words.interval(made)})",
        "verdict": "holds",
        "details": "12 pairs, mariadb:10.11 10.11.19, machine 1, 2023-11-14",
    }
    assert "1. 2 x model, 8 GiB; provisioner `local`, profile `quick`" in text


def test_a_table_without_results_says_that_it_is_not_measured(known, tmp_path):
    """Also beside a table that has some; without any result there is no list of machines."""
    empty = page_of(known, tmp_path)
    made = record(claim_id=claim_of(known, "flush_2.beats(galera3)").claim_id)
    found = rows(page_of(known, stored(known, tmp_path, made)))

    assert {cells["measured"] for cells in rows(empty).values()} == {"not measured"}
    assert "## Machines" not in empty
    assert [cells["measured"] for cells in found.values()].count("not measured") == len(found) - 1


def test_storing_twice_replaces_a_claim_and_keeps_the_others(known, tmp_path):
    """A further run has one of two claims; its new answer counts, and the other one stays."""
    flush, tuned = (claim_of(known, text).claim_id for text in ("flush_2.beats(galera3)", "tuned_a.beats(galera3)"))
    into = stored(known, tmp_path, record(claim_id=flush), record(claim_id=tuned, candidate="tuned_a"))
    before = module("published_results").read(FLUSH, into)
    stored(known, tmp_path, record(claim_id=flush, faster=2.5, pairs=16), into=into)
    after = module("published_results").read(FLUSH, into)

    assert [result.pairs for result in before] == [12, 12]
    assert {result.claim_id: result.pairs for result in after} == {flush: 16, tuned: 12}
    assert after[0].measured != before[0].measured


def test_a_claim_has_a_row_for_each_release(known, tmp_path):
    """A newer version of a release replaces the older one."""
    claim = claim_of(known, "async.beats(semisync)", "mysqlslap write c30")
    versions = ("mariadb:10.11 10.11.18", "mariadb:10.11 10.11.19", "mysql:9.7 9.7.4")
    text = page_of(
        known,
        stored(known, tmp_path, *(record(claim_id=claim.claim_id, release=release) for release in versions)),
        claim.work,
    )

    assert re.findall(r"pairs, (\S+ \S+), machine", text) == list(versions[1:])


def test_only_published_claims_of_the_suites_are_stored(known, tmp_path):
    """Other claims of a run are left out, and a stored claim that no suite makes any more is removed."""
    flush = claim_of(known, "flush_2.beats(galera3)").claim_id
    into = stored(known, tmp_path, record(claim_id="test_own::test_mine | a.beats(b) | load"), record(claim_id=flush))
    kept = [result.claim_id for result in module("published_results").read(FLUSH, into)]
    fewer = [claim for claim in known if claim.claim_id != flush]
    changed = module("published_results").store(results(tmp_path / "none", []), fewer, into)

    assert kept == [flush]
    assert changed == {FLUSH: (0, 0, 1)}
    assert module("published_results").read(FLUSH, into) == []


def test_an_inconclusive_claim_leads_to_its_reason(known, tmp_path):
    """The name of the reason is a link to the page of messages."""
    claim = claim_of(known, "flush_2.beats(galera3)")
    text = page_of(known, stored(known, tmp_path, undecided(claim_id=claim.claim_id)))

    assert rows(text)[claim.text, claim.load]["verdict"] == "inconclusive: {reason}`budget-used`"


def test_a_comparison_without_a_claim_has_a_row(known, tmp_path):
    """It is measured, and claims nothing."""
    claim = claim_of(known, "slave_threads_2 against galera3", "mysqlslap mixed c50")
    found = rows(page_of(known, stored(known, tmp_path, beside(claim_id=claim.claim_id))))[claim.text, claim.load]

    assert (found["published"], found["verdict"]) == ("1.64x", "unclear")


def test_a_guard_has_the_interval_that_let_it_hold(known, tmp_path):
    """It is the 90 % interval."""
    claim = claim_of(known, "autoinc_2.same_as(galera3, within=0.1)")
    made = record(kinds.same_as(0.1), faster=1.0, sd=0.01, pairs=20, claim_id=claim.claim_id)
    found = rows(page_of(known, stored(known, tmp_path, made)))[claim.text, claim.load]

    assert found["verdict"] == "holds"
    assert found["measured"] == f"{words.ratio(made)} ({words.deciding_interval(made)})"


def test_a_chart_without_numbers_is_compared_by_its_shape(known):
    """The claims about DRBD stand below the finding that they repeat."""
    text = page_of(known, ROOT / "nowhere", "drbd-latency-2012")
    first, second = text.split("## Finding 1\n")[1].split("## Finding 2\n")

    assert {cells["published"] for cells in rows(text).values()} == {"chart"}
    assert {claim.partition("(")[0] for claim, _ in rows(first)} == {"ordered", "fades"}
    assert "sync_binlog=1" in second


def test_an_order_has_the_published_ratio_of_each_step(known):
    """The slowest step first: InnoDB Cluster, semi-synchronous, asynchronous."""
    claim = claim_of(known, "ordered(single_primary, semisync, async)", "mysqlslap write c30")
    found = rows(page_of(known, ROOT / "nowhere", claim.work))

    assert found[claim.text, claim.load]["published"] == "1.81x, 1.12x"  # .295 / .163, .163 / .146


def test_a_section_has_the_command_that_repeats_it(known):
    """A file whose other tests belong to another table is named with its tests."""
    text = page_of(known, ROOT / "nowhere")
    third = text.split("## Table 3\n")[1].split("\n## ")[0]

    assert "pytest suites/galera/test_flush.py \\\n" in third
    assert "suites/galera/test_storage.py::test_a_lazy_log_beats_the_default\n" in third


def test_files_of_stored_results_stay_small(known, tmp_path):
    """Also with a result for every claim of the largest work."""
    own = [claim for claim in known if claim.work == FLUSH]
    into = stored(known, tmp_path, record(claim_id=own[0].claim_id, provisioner="local"))
    (one,) = module("published_results").read(FLUSH, into)
    machine = "2 x Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz, 15.4 GiB, kernel 6.1.0-37-cloud-amd64"
    lines = [json_text.encode(dataclasses.replace(one, claim_id=claim.claim_id, machine=machine)) for claim in own]

    assert len(own) > 50
    assert sum(map(len, lines)) < MOST


def test_results_in_the_repository_belong_to_the_suites(known):
    """Each stored line can be read, is about a claim that a suite makes, and its file is small."""
    works = {claim.work: {one.claim_id for one in known if one.work == claim.work} for claim in known}
    directory = module("published_results").DIRECTORY
    files = sorted(directory.glob("*.jsonl"))
    lost = [
        (work, result.claim_id)
        for work, ids in works.items()
        for result in module("published_results").read(work, directory)
        if result.claim_id not in ids
    ]

    assert lost == []
    assert [path.name for path in files if path.stem not in works or path.stat().st_size >= MOST] == []


def test_a_damaged_line_is_named(tmp_path):
    """File and line, and what to do."""
    (tmp_path / f"{FLUSH}.jsonl").write_text('{"format":1}\n')

    with pytest.raises(ConfigError, match=rf"{FLUSH}.jsonl, line 1: .* store the results of a run again"):
        module("published_results").read(FLUSH, tmp_path)


def test_claims_of_a_run_are_those_of_the_list(known, tmp_path):
    """A run of a suite writes the same claim ids and texts as the list, so its results find their rows."""
    command = ["pytest", "suites/galera/test_tuned.py", "-k", "beside or tuned_b-write", "-q"]
    (tmp_path / "no_charts.py").write_text(conftests.NO_CHARTS)
    plugins = ["-p", "tests.support.fake_session", "-p", "no_charts", *conftests.PLAIN]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", *command, *plugins, "--db-results", str(tmp_path / "run")],
        cwd=ROOT, env={**environment, "XDG_CACHE_HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    made = {(one.claim_id, one.text, one.load) for one in schema.claim_documents(tmp_path / "run")}

    assert done.returncode == 0, done.stdout
    assert len(made) == 3
    assert made <= {(claim.claim_id, claim.text, claim.load) for claim in known}


def test_the_script_stores_and_says_what_it_did(tmp_path, known, capsys):
    """A directory that does not exist is left out; a second call changes nothing."""
    script, into = module("store_published"), tmp_path / "stored"
    run = results(tmp_path / "run", [record(claim_id=claim_of(known, "flush_2.beats(galera3)").claim_id)])
    codes = [script.main([str(run), str(tmp_path / "guests")], into) for _ in range(2)]
    printed = capsys.readouterr().out.splitlines()

    assert codes == [0, 0]
    stored, again = printed
    assert missing(stored, f"{into / f'{FLUSH}.jsonl'}: ", "1 claim added") == []
    assert missing(again, f"{run}: ", "no published claim", "not stored") == []


@pytest.fixture
def measuring(tmp_path):
    """Run published.sh with a pytest that ends with these exit codes; return its exit code and the calls."""

    def run(*codes, options=()):
        (tmp_path / ".venv" / "bin").mkdir(parents=True)
        (tmp_path / "codes").write_text("".join(f"{code}\n" for code in codes))
        taken = 'echo "pytest $*" >>calls; code=$(head -1 codes); sed -i 1d codes; exit "$code"'
        for name, text in (("pytest", taken), ("python", 'echo "python $*" >>calls')):
            program = tmp_path / ".venv" / "bin" / name
            program.write_text(f"#!/bin/bash\n{text}\n")
            program.chmod(0o755)
        done = subprocess.run([ROOT / "scripts" / "published.sh", *options], cwd=tmp_path, check=False)
        return done.returncode, (tmp_path / "calls").read_text().splitlines()

    return run


SERVERS = "pytest -m published --db-resume --db-results reports/published/servers suites --ignore=suites/drbd"
GUESTS = "pytest -m published --db-resume --db-results reports/published/guests suites/drbd"
STORE = "python scripts/store_published.py reports/published/servers reports/published/guests"


@pytest.mark.parametrize(
    ("codes", "code", "calls"),
    [
        ((0, 0), 0, [SERVERS, GUESTS, STORE]),
        ((1, 0), 1, [SERVERS, GUESTS, STORE]),
        ((0, 5), 0, [SERVERS, GUESTS, STORE]),
        ((5, 1), 1, [SERVERS, GUESTS, STORE]),
        ((2,), 2, [SERVERS, STORE]),
    ],
    ids=["all hold", "one is red", "no guests selected", "only guests selected", "interrupted"],
)
def test_what_is_measured_is_stored(measuring, codes, code, calls):
    """Each run continues the one before it. A red claim is an answer. After an interruption the rest is stored."""
    assert measuring(*codes) == (code, calls)


def test_options_select_claims(measuring):
    """They go to both runs."""
    _, calls = measuring(0, 5, options=["-k", "flush"])

    assert calls == [f"{SERVERS} -k flush", f"{GUESTS} -k flush", STORE]

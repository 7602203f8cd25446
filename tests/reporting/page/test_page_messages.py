"""The sentences of the page and of its making as users read them."""

import dataclasses

from pytest_dbcluster import reasons
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.page import comparison_view, report_page, sources, summary
from pytest_dbcluster.reporting.page.claim_view import ClaimView
from pytest_dbcluster.reporting.page.making import Making
from tests.reporting.page.test_comparison_view import of
from tests.support import golden
from tests.support.records import failed, record, undecided
from tests.support.results import a_sweep, results
from tests.support.run_documents import TESTS

CLAIMS = {
    "one claim": [record()],
    "two claims": [record(), record(load="two")],
    "an inconclusive claim": [undecided()],
    "a refuted claim": [record(), record(load="two"), failed()],
    "claims with every outcome": [record(), record(load="two"), undecided(), failed()],
    "many refuted claims": [failed(load=f"load {number}") for number in range(5)],
    "no claim": [],
}
KILLED = {"killed": {"ended": None, "selected": 9}, "cut short": {"cut_short": "SIGTERM", "selected": 9}}


def progress(seconds, again):
    """The lines of a page whose claims take so long each."""
    lines, now = [], [0.0]
    making = Making(lines.append, again, lambda: now[0])
    for number in range(1, 41):
        now[0] += seconds
        making.show_progress(number, 40)
    return "\n".join(lines)


def test_the_sentences_of_a_page(tmp_path, monkeypatch):
    """They are those of the golden file."""
    monkeypatch.setattr(claim_chart, "svg", lambda made: None)
    read = {
        case: sources.read(results(tmp_path / str(number), made, tests=TESTS[:3]))
        for number, (case, made) in enumerate(CLAIMS.items())
    }
    torn = results(tmp_path / "torn", [record(), record(load="two")])
    (torn / "claims.jsonl").write_bytes((torn / "claims.jsonl").read_bytes()[:-200])
    (torn / "run.json").unlink()
    ends = {case: sources.read(results(tmp_path / case, [record()], **run)) for case, run in KILLED.items()}
    alone = of("galera", claim_id="test_it::test_alone | a.beats(b) | load")
    other = of("standalone", 1, release="mariadb:11.8 11.8.3")
    topologies = [(ends["killed"], one, "") for one in (of("galera"), other, alone)]
    guard = record(kinds.no_slower_than(0.2), faster=1.02, sd=0.01, pairs=8)
    published = ClaimView(record(published=1.3))
    monkeypatch.setattr(reasons, "address", lambda found: "https://example.org/#reason-budget-used")

    golden.compare(
        "page",
        {
            **{case: summary.sentence([source]) for case, source in read.items()},
            "no claim, two curves": summary.sentence([dataclasses.replace(read["no claim"], curves=(a_sweep(),) * 2)]),
            "a broken test": summary.sentence([ends["killed"]]),
            "files that are missing or torn": "\n".join(sources.read(torn).notes),
            **{f"a run that was {case}": "\n".join(source.notes) for case, source in ends.items()},
            "tests without an answer": "\n".join(
                f"{one.state}: {one.reason}" for one in summary.tests([ends["killed"]])
            ),
            "claims side by side": "\n".join(comparison_view.view(topologies, "topology").notes),
            "a guard": "\n".join(ClaimView(guard).remarks),
            "an inconclusive claim of the page": ClaimView(undecided()).needs,
            "what to do about it": str(ClaimView(undecided()).advice),
            "a published ratio": f"{published.published}: {published.difference}",
            "nothing moved": ClaimView(record()).why_not,
        },
        {tmp_path: "TMP"},
    )


def test_the_sentences_of_its_making(tmp_path, monkeypatch):
    """They are those of the golden file: progress, and why there is no page."""
    making = Making()
    making.view("claim 4 (a.beats(b), load)", lambda: 1 / 0)
    damaged = results(tmp_path / "run", [])
    (damaged / "run.json").write_text("{}\n")
    messages = {
        "a page that takes long": progress(0.2, "dbcluster report DIR"),
        "a page that takes very long": progress(1.0, "dbcluster report DIR"),
        "a view that fails": "\n".join(making.failed.values()),
        "results that cannot be read": report_page.make(damaged),
    }
    monkeypatch.setattr(report_page, "html", lambda *given: 1 / 0)
    messages["an error"] = report_page.make(results(tmp_path / "other", []))
    monkeypatch.setattr(drawing, "available", lambda: False)
    messages["no matplotlib"] = report_page.make(damaged)

    golden.compare("page_making", messages, {tmp_path: "TMP"})

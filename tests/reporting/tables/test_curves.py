"""What a run shows and keeps of a curve: whole runs of pytest on made-up rounds, and the table as a value."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pytest_dbcluster.plugin.fixture
import pytest_dbcluster.plugin.session  # noqa: F401 (imported once, not in each run)
from pytest_dbcluster.reporting.tables import curves, layout
from pytest_dbcluster.rounds import metrics
from tests.support import conftests
from tests.support.curves import curve, over_releases, point

FAKE = Path(__file__).parents[2] / "support" / "fake_session.py"
SUITE = """
    import dataclasses
    import pytest
    from pytest_dbcluster.spec import ClusterSpec

    ON = [ClusterSpec("galera", nodes=3), ClusterSpec("galera", nodes=3, name="flush_2")]

    @dataclasses.dataclass(frozen=True)
    class Load:
        threads: int = 8
        rows: int = 100

        def __str__(self):
            return f"load t{{self.threads}}"

    def test_curve(measure):
        curve = measure.sweep(Load(), on={on}, {values})
        {body}
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a suite with this body after its sweep. Charts and page are made where a test asks for them."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "400")

    def run(body, *options, values="threads=(1, 4)", on="ON", faster=1.5, sd=0.02, charts=False):
        pytester.makeconftest(FAKE.read_text() + ("" if charts else conftests.NO_CHARTS))
        monkeypatch.setenv("FASTER", str(faster))
        monkeypatch.setenv("SD", str(sd))
        pytester.makepyfile(SUITE.format(body=body, values=values, on=on))
        return pytester.runpytest_inprocess("-Werror", "-p", "pytest_dbcluster.plugin.hooks", "--db-seed=1", *options)

    return run


def kept(pytester, ending):
    """The one file of a curve with this ending."""
    [path] = (pytester.path / "reports" / "latest" / "curves").glob(f"*.{ending}")
    return path


def rows_of(pytester):
    """The lines of its CSV."""
    return list(csv.DictReader(kept(pytester, "csv").read_text().splitlines()))


def test_a_curve_is_shown_and_kept_at_the_end(run, pytester):
    """A table on the screen and in the summary, a CSV and a chart."""
    result = run("assert curve.every(lambda default, flush_2: flush_2.beats(default))", charts=True)
    result.assert_outcomes(passed=1)

    result.stdout.fnmatch_lines(
        [
            "*= curve: load, operations / s, median (95 % interval) =*",
            "threads  galera3 * flush_2*",
            "1 *20* (* .. *)*",
            "4 *20* (* .. *)*",
            "2 hold  * report: *",
        ]
    )
    rows = rows_of(pytester)
    assert [(row["threads"], row["variant"]) for row in rows] == [
        ("1", "galera3"), ("1", "flush_2"), ("4", "galera3"), ("4", "flush_2"),
    ]  # fmt: skip
    assert all(float(row["low"]) < float(row["median"]) < float(row["high"]) for row in rows)
    assert ElementTree.parse(kept(pytester, "svg")).getroot().tag.endswith("svg")
    assert "## curve: load, operations / s" in (pytester.path / "reports" / "latest" / "summary.md").read_text()


def test_the_claims_of_a_sweep_are_told_apart(run, pytester):
    """By its field, where the name of the load does not say it."""
    result = run("assert curve.every(lambda a, b: b.beats(a))", values="rows=(5, 50)")
    result.stdout.fnmatch_lines(["*= curve: load t8, *", "rows *"])
    lines = (pytester.path / "reports" / "latest" / "claims.jsonl").read_text().splitlines()

    assert [json.loads(line)["load"] for line in lines] == ["load t8 rows=5", "load t8 rows=50"]


def test_a_curve_that_is_only_drawn_is_shown_as_well(run, pytester):
    """A run without claims shows the table of the curve and the path of the results."""
    result = run("curve.draw(3)")
    result.assert_outcomes(passed=1)

    result.stdout.fnmatch_lines(["*= curve: load, *", "1  *", "4  *", "results: *summary.md*"])
    result.stdout.no_fnmatch_line("*performance claims*")
    assert [row["rounds"] for row in rows_of(pytester)] == ["3"] * 4


def test_the_points_before_a_failure_are_kept(run, pytester):
    """The test ends at its first point; what was measured until then is in the table."""
    result = run("for _, default, flush_2 in curve: assert flush_2.beats(default)", faster=0.5)
    result.assert_outcomes(failed=1)

    result.stdout.fnmatch_lines(["*= curve: load, *", "1  *"])
    assert {row["threads"] for row in rows_of(pytester)} == {"1"}


def test_an_open_curve_is_neither_pass_nor_failure(run):
    """A claim about a curve that is inconclusive is listed with the inconclusive claims."""
    result = run(
        "assert curve.every(lambda default, flush_2: flush_2.beats(default))",
        "--db-max-pairs=12",
        faster=1.0,
        sd=0.3,
    )

    assert result.parseoutcomes() == {"inconclusive": 1}
    result.stdout.fnmatch_lines(["2 inconclusive*"])


def test_a_sweep_without_a_claim_is_an_error(run):
    """It would be green whatever the servers did, and it drew nothing to show."""
    run("pass").stdout.fnmatch_lines(["test_*::test_curve measured load t1 but makes no claim; *"])


def test_the_answers_of_a_sweep_have_to_be_read(run):
    """Every answer is one that nobody read otherwise."""
    result = run("curve.every(lambda default, flush_2: flush_2.beats(default))")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*the test does not read the verdict of flush_2.beats(galera3), flush_2.beats(galera3); assert it"]
    )


def test_a_curve_is_attached_to_its_test(run, pytester):
    """A step of Allure's with the points and the chart."""
    run("curve.draw(3)", "-p", "allure_pytest", charts=True).assert_outcomes(passed=1)
    [path] = (pytester.path / "reports" / "latest" / "allure-results").glob("*-result.json")
    [step] = json.loads(path.read_text())["steps"]

    assert step["name"] == "curve: load over threads"
    assert [one["name"] for one in step["attachments"]] == ["points", "chart"]


def test_the_profile_is_a_fixture(pytester, run):
    """A suite chooses its scales by it."""
    run("curve.draw(1)")
    pytester.makepyfile(test_profile="def test_it(db_profile):\n    assert db_profile == 'paper'\n")

    result = pytester.runpytest_inprocess(
        "-p", "pytest_dbcluster.plugin.hooks", "--db-profile=paper", "test_profile.py"
    )
    result.assert_outcomes(passed=1)


def test_many_variants_stand_below_each_other():
    """A line of five would be wider than a screen."""
    made = curve([point(value, f"v{n}") for value in (1, 4) for n in range(5)])
    block = curves.block(made)

    assert block.columns == ("threads", "variant", "/s", "rounds")
    assert block.rows[1].cells == ("1", "v1", "100 (100 .. 100)", "6")
    assert len(block.rows) == 10


def test_a_point_that_was_not_measured_is_a_dash():
    """Its test ended before; few rounds have no interval."""
    block = curves.block(curve([point(1, "a", seconds=[1.0] * 5), point(1, "b"), point(4, "a")]))

    assert [row.cells for row in block.rows] == [("1", "100", "100 (100 .. 100)"), ("4", "100 (100 .. 100)", "-")]


def test_what_a_reader_has_to_know_stands_below():
    """In the terminal and in the summary."""
    block = curves.block(curve([point(1, "a")], notes=["nodes share 2 cores"]))

    assert layout.text(block, 80)[-1][0].strip() == "nodes share 2 cores"


def test_the_file_has_the_latencies_of_all_rounds():
    """In milliseconds; empty cells for a load that keeps no ledger."""
    made = curve([point(1, "a", latencies=[0.01] * 50), point(1, "b")])
    one, other = csv.DictReader(curves.as_csv(made).splitlines())

    assert float(one["p95_ms"]) == pytest.approx(10, rel=0.011)
    assert other["p95_ms"] == ""


def test_the_latencies_of_an_open_loop_count_what_was_lost():
    """Ten of a hundred never ended: they took twice their round, as in a claim about the same rounds."""
    found = point(1, "a", latencies=[0.01] * 90)
    said = dataclasses.replace(found.rounds[0].outcome, good=90, rate=100.0, offered=100)
    found = dataclasses.replace(found, rounds=[dataclasses.replace(one, outcome=said) for one in found.rounds])
    [row] = csv.DictReader(curves.as_csv(curve([found])).splitlines())

    assert float(row["p50_ms"]) == pytest.approx(10, rel=0.011)
    assert (
        float(row["p95_ms"]) == metrics.display_value(found.rounds[0], "p95", "load") == pytest.approx(2000, rel=0.011)
    )


def test_a_curve_with_a_baseline_has_a_column_of_percents_for_each_variant():
    """However many there are. The baseline has the metric itself; where it has no rounds nothing is relative to it."""
    speeds = {"a": 1.0, "b": 2.0, "c": 4.0, "d": 0.5}
    points = [point(value, name, seconds=(took,) * 3) for value in (1, 4) for name, took in speeds.items()]
    made = curve([one for one in points if (one.value, one.variant) != (4, "a")], baseline="a", test="t::t[x=1]")
    shown = curves.block(made)

    assert shown.title == "curve: load, x=1, medians in percent of a"
    assert shown.columns == ("threads", "a, /s", "b", "c", "d")
    assert [row.cells for row in shown.rows] == [
        ("1", "100", "50 %", "25 %", "200 %"),
        ("4", "-", "-", "-", "-"),
    ]
    lines = list(csv.DictReader(curves.as_csv(made).splitlines()))
    assert [line["share_of_a"] for line in lines] == ["1.0", "0.5", "0.25", "2.0", "", "", ""]


def test_releases_have_their_ratio_to_the_newest():
    """Beside the median; exact versions are below."""
    shown = curves.block(over_releases("async"))

    assert shown.title == "curve: load, operations / s, median (95 % interval), ratio to mariadb:11.8 (99.9 %)"
    assert shown.columns == ("release", "async", "ratio")
    assert [row.cells for row in shown.rows] == [
        ("mariadb:10.5", "125 (125 .. 125)", "1.25x (1.20 .. 1.30)"),
        ("mariadb:11.8", "100 (100 .. 100)", "1.00x"),
    ]
    assert shown.rows[-1].remark == "releases: mariadb:10.5 10.5.29, mariadb:11.8 11.8.6"


def test_each_cluster_has_its_ratios():
    """Side by side, or in rows if there are many clusters."""
    assert curves.block(over_releases("a", "b")).columns == ("release", "a", "a: ratio", "b", "b: ratio")
    many = curves.block(over_releases("a", "b", "c", "d"))

    assert many.columns == ("release", "variant", "/s", "ratio", "rounds")
    assert many.rows[0].cells == ("mariadb:10.5", "a", "125 (125 .. 125)", "1.25x (1.20 .. 1.30)", "6")


def test_a_ratio_without_ends_has_no_interval():
    """A dash stands for a release without rounds in common with the newest."""
    made = over_releases("a")
    open_end = dataclasses.replace(made.points[0], ratio_high=None)

    assert curves.ratio_text(open_end) == "1.25x (1.20 .. inf)"
    assert curves.ratio_text(dataclasses.replace(open_end, ratio_low=None)) == "1.25x"
    assert curves.ratio_text(dataclasses.replace(open_end, ratio=None)) == "-"


def test_the_file_has_the_ratios_of_releases():
    """With the ends of the interval; empty for an end that is not known."""
    older, newest = csv.DictReader(curves.as_csv(over_releases("a")).splitlines())

    assert [older[name] for name in ("ratio", "ratio_low", "ratio_high")] == ["1.25", "1.2", "1.3"]
    assert [newest[name] for name in ("ratio", "ratio_low", "ratio_high")] == ["1.0", "", ""]


SWEEP = 'release=("mariadb:10.5", "mariadb:10.11", "mariadb:11.8")'
NEIGHBOURS = "curve.draw(); assert curve.every(lambda older, newer: newer.no_slower_than(older, by=0.5))"


def test_a_run_shows_its_line_of_releases(run, pytester, monkeypatch):
    """Table, summary, CSV, chart and page have each release with its ratio; one that is left out has its reason."""
    monkeypatch.setenv("MISSING", "mariadb:10.11")
    result = run(NEIGHBOURS, values=SWEEP, on="ON[:1]", faster=0.8, charts=True)
    result.assert_outcomes(passed=1)

    result.stdout.fnmatch_lines(
        [
            "*= curve: load t8, operations / s, median (95 % interval), ratio to mariadb:11.8 (99.9 %) =*",
            "release * galera3 * ratio",
            "mariadb:10.5 * (* .. *) *1.2*x (1.* .. 1.*)",
            "mariadb:11.8 * (* .. *) *1.00x",
            "*mariadb:10.11 is left out: made up; releases: mariadb:10.5 1.2.3, mariadb:11.8 1.2.3",
        ]
    )
    rows = rows_of(pytester)
    assert [(row["release"], row["variant"]) for row in rows] == [
        ("mariadb:10.5", "galera3"), ("mariadb:11.8", "galera3"),
    ]  # fmt: skip
    latest = pytester.path / "reports" / "latest"
    summary = (latest / "summary.md").read_text().partition("## curve: ")[2]
    assert re.findall(r"^\| `(mariadb:\S+)` ", summary, re.MULTILINE) == ["mariadb:10.5", "mariadb:11.8"]
    assert "speed / mariadb:11.8" in kept(pytester, "svg").read_text()
    page = (latest / "index.html").read_text()
    assert "mariadb:10.11 is left out: made up" in page


def test_one_release_is_no_line(run, monkeypatch):
    """The test is skipped with the reasons of the others."""
    monkeypatch.setenv("MISSING", "mariadb:10.5 mariadb:10.11")
    result = run(NEIGHBOURS, "-rs", values=SWEEP, on="ON[:1]")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["*a curve over releases needs two or more; mariadb:10.5 is left out: made up; mariadb:10.11 is left out*"]
    )

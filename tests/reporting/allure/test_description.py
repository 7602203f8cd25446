"""How Allure shows a test: its name, its description as HTML, and its message."""

import base64
import html
import re

import pytest

from pytest_dbcluster import reasons
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.allure import description
from pytest_dbcluster.reporting.allure.description import Shown
from tests.support.curves import curve, point
from tests.support.records import beside, failed, record, undecided


def ratio(made):
    """The ratio of a claim as the page shows it."""
    return f"{made.verdict.ratio:.2f}x"


def test_the_name_has_the_ratio_with_its_interval():
    """A reader of the list of tests sees the figure."""
    made = record(faster=1.84, pairs=20)

    assert re.fullmatch(r"test_it: 1\.\d\dx \(1\.\d\d \.\. \d\.\d\d\)", description.name("test_it", [Shown(made)]))


@pytest.mark.parametrize(
    ("many", "named"),
    [
        ([record(), failed(), undecided()], "{1} * and 2 more"),
        ([record(), undecided(), beside()], "inconclusive: {1} * and 1 more"),
        ([beside()], "{0} *"),
    ],
    ids=["refuted", "inconclusive", "compared"],
)
def test_of_several_claims_the_worst_names_the_test(many, named):
    """What is refuted comes first, then what is open; a comparison names a test without claims alone."""
    said = description.name("test_it", [Shown(one) for one in many])
    pattern = re.escape(named.format(*map(ratio, many))).replace(r"\*", r"\(.* \.\. .*\)")

    assert re.fullmatch(f"test_it: {pattern}", said)


def test_a_guard_is_named_by_the_interval_that_decided_it():
    """It holds by the 90 % interval, and may have no other yet."""
    made = record(kinds.no_slower_than(0.05), faster=1.02, sd=0.01, pairs=8)

    assert re.fullmatch(
        r"test_it: 1\.\d\dx \(90 %: \d\.\d\d \.\. 1\.\d\d\)", description.name("test_it", [Shown(made)])
    )
    assert "<tr><th>holds by</th>" in description.html("", [Shown(made)])


def test_an_inconclusive_test_without_a_claim_is_named_too():
    """Its budget was too small for a first look: Allure's list shows nothing but its name."""
    assert description.name("test_it", [], inconclusive=True) == "test_it: inconclusive"
    assert description.name("test_it", []) == "test_it"


def test_a_counter_is_named():
    """A ratio of anything but throughput says of what."""
    made = record(kinds.lower(), metric="fsyncs_per_commit")

    assert description.name("test_it", [Shown(made)]).startswith("test_it: fsyncs_per_commit ")


def test_a_test_without_claims_keeps_its_name():
    """A curve has no ratio."""
    drawn = curve([point(1, "galera3", seconds=[1.0])])

    assert description.name("test_it", [Shown(drawn)]) == "test_it"
    assert description.name("test_it", []) == "test_it"


def test_the_description_has_sentence_table_and_chart():
    """They stand in this order; the chart is an image, because Allure takes parts of inline SVG away."""
    made = record(faster=1.84, pairs=20, published=7.41, data={"flush_2": "1 row", "galera3": "1 row"})
    told = description.html("", [Shown(made, "<svg>drawn</svg>")])
    [image] = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', told)
    texts = [
        "✓ holds: flush_2 is faster than galera3",
        "mysqlslap write c50",
        "<th>data</th><td",
        ">1 row</td>",
        "99.9 %",
        "7.41x, the ",
        "<img",
    ]

    assert base64.b64decode(image) == b"<svg>drawn</svg>"
    assert [told.index(text) for text in texts] == sorted(told.index(text) for text in texts)


def test_an_open_claim_says_what_it_needs():
    """Its line of the table is that of the page."""
    told = description.html("", [Shown(undecided())])

    assert "<h3>? inconclusive: whether flush_2 is faster than galera3</h3>" in told
    assert "budget of 120 s of measured time used (--db-budget); needs about" in told
    advice = reasons.advice("budget of 120 s of measured time used (--db-budget)")
    assert "<th>what to do</th>" in told
    assert f"{html.escape(advice.text)} {advice.address}</td>" in told


def test_an_inconclusive_test_without_a_claim_says_what_to_do():
    """With the page that has more about its reason; a reason that no page explains is shown alone."""
    why = "inconclusive: a verdict needs at least 12 pairs, which take 48 s"
    [reason] = reasons.find(why)

    assert description.html("", [], why) == (
        f"<h3>{why}</h3><p>what to do: {reason.remedy} {reasons.address([reason])}</p>"
    )
    assert description.html("", [], "no time <b>") == "<h3>no time &lt;b&gt;</h3>"


def test_text_of_others_is_no_html():
    """Docstrings, loads and notes are shown as they are written."""
    drawn = curve([point(1, "galera3", seconds=[1.0])], load="a<b", notes=("1 < 2",))
    told = description.html("Faster by <b>\n\nMore & more", [Shown(record(load="<script>")), Shown(drawn)])

    assert told.startswith("<p>Faster by &lt;b&gt;</p><p>More &amp; more</p>")
    assert "<script>" not in told
    assert "<h3>a&lt;b over threads</h3><p>1 &lt; 2</p>" in told


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("pytest_dbcluster.errors.Inconclusive: no time; no start", "inconclusive: no time; no start"),
        ("pytest_dbcluster.errors.ClaimFailed: tables differ", "tables differ"),
        ("pytest_dbcluster.errors.SeriesVoid: tables differ", "pytest_dbcluster.errors.SeriesVoid: tables differ"),
        ("AssertionError: assert 1 == 2", "AssertionError: assert 1 == 2"),
    ],
)
def test_a_message_without_its_claim_is_without_the_names_of_our_classes(message, said):
    """An inconclusive test says that it is inconclusive; broken tests keep the kind of their error."""
    assert description.message(message, [Shown(record())]) == (said, "")


def test_a_refuted_claim_is_one_line():
    """All that pytest says is folded, so that chart and table stand on the first screen."""
    said, folded = description.message(
        "pytest_dbcluster.errors.ClaimFailed: FAILED a\n  b", [Shown(record()), Shown(failed())]
    )

    assert re.fullmatch(r"refuted: flush_2 is not faster than galera3: 0\.\d\dx \(0\.\d\d \.\. 0\.\d\d\)", said)
    assert folded == "FAILED a\n  b"


def test_an_inconclusive_claim_says_what_would_decide_it():
    """In the same line."""
    said, folded = description.message(
        "pytest_dbcluster.errors.Inconclusive: INCONCLUSIVE a\n  b", [Shown(undecided())]
    )

    assert said.startswith("inconclusive: whether flush_2 is faster than galera3: 0.")
    assert "; budget of 120 s of measured time used (--db-budget); needs about" in said
    assert folded == "INCONCLUSIVE a\n  b"

"""Where the parts of a page lie: nothing covers anything else, on a screen, on a phone and on paper."""

import functools
import itertools

import pytest

from pytest_dbcluster.reporting.page import report_page
from tests.support import browser as browsers
from tests.support.awkward import awkward
from tests.support.results import compared_records, compared_run, comparison

pytestmark = pytest.mark.skipif(browsers.program() is None, reason=browsers.INSTALL)
PHONE, SCREEN, PAPER = 375, 1280, 718  # pixels: of the narrowest phones in use, of a small laptop, of A4 in its margins
# The charts that are shown: the place of each, and its texts with theirs.
CHARTS = """(() => {
  const place = one => (({left, right, top, bottom}) => [left, right, top, bottom])(one.getBoundingClientRect());
  const texts = svg => [...svg.querySelectorAll("text")].filter(text => text.textContent.trim());
  return [...document.querySelectorAll("figure svg")].filter(svg => svg.clientWidth)
    .map(svg => ({place: place(svg), texts: texts(svg).map(text => [text.textContent.trim(), place(text)])}));
})()"""
LETTERS = 2 / 3  # of the height of a text's box


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The file of a page of results that are hard to show."""
    directory = awkward(tmp_path_factory.mktemp("page") / "run")
    assert report_page.make(directory) == f"report: {directory}/index.html"
    return directory / "index.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser without a window."""
    opened = browsers.Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def unfold(browser):
    """Open every part that is folded."""
    browser.script("document.querySelectorAll('details').forEach(one => { one.open = true; })")


@pytest.fixture(scope="module")
def laid_out(browser, page):
    """``laid_out(width)``: the charts of the unfolded page at this width, and how wide the page is then."""

    @functools.cache
    def laid_out(width):
        browser.open(page, width=width)
        unfold(browser)
        return browser.script(CHARTS), browser.script("document.documentElement.scrollWidth")

    return laid_out


def inked(said, place):
    """The place of the letters inside of a text's box; a label of an upright axis lies on its side."""
    left, right, top, bottom = place
    wide, high = right - left, bottom - top
    if high > wide and len(said) > 2:
        return left + wide * (1 - LETTERS) / 2, right - wide * (1 - LETTERS) / 2, top, bottom
    return left, right, top + high * (1 - LETTERS) / 2, bottom - high * (1 - LETTERS) / 2


def covered(chart):
    """The pairs of texts of a chart that lie on each other."""
    texts = [(said, inked(said, place)) for said, place in chart["texts"]]
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(texts, 2)
        if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
    ]


def outside(chart):
    """The texts that lie outside of their chart, in part at least."""
    left, right, top, bottom = chart["place"]
    return [
        said
        for said, (x, to_x, y, to_y) in chart["texts"]
        if x < left or to_x > right + 1 or y < top - 1 or to_y > bottom + 1
    ]


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_no_text_of_a_chart_covers_another(laid_out, width):
    """Ticks, legends and labels of every chart."""
    charts, _ = laid_out(width)

    assert len(charts) > 20
    assert [pair for chart in charts for pair in covered(chart)] == []


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_no_text_runs_out_of_its_chart(laid_out, width):
    """Also names of sixty letters, and the ratio of a counter."""
    charts, _ = laid_out(width)

    assert [said for chart in charts for said in outside(chart)] == []


@pytest.mark.parametrize("width", [PHONE, 640, SCREEN])
def test_the_page_does_not_scroll_sideways(laid_out, width):
    """Names of sixty letters are broken; what is wider, such as a table, scrolls by itself."""
    _, wide = laid_out(width)

    assert wide <= width


def test_the_text_of_a_chart_can_be_read_on_a_phone(laid_out):
    """Its letters are eight pixels high at least: the chart scrolls, and is not shrunk."""
    charts, _ = laid_out(PHONE)
    heights = [bottom - top for chart in charts for _, (_, _, top, bottom) in chart["texts"]]

    assert min(heights) >= 8


def test_the_plot_of_all_claims_fits_a_phone(browser, page):
    """It is what one looks for first, and has a shape of its own there."""
    browser.open(page, width=PHONE)
    shown = browser.script(
        "[...document.querySelectorAll('#overview figure')].filter(one => one.clientWidth)"
        ".map(one => [one.className, one.scrollWidth <= one.clientWidth])"
    )

    assert shown == [["phone", True], ["phone", True]]


def test_words_stay_whole_on_a_phone(browser, page):
    """A heading such as "rounds" is on one line."""
    browser.open(page, width=PHONE)
    unfold(browser)
    broken = browser.script(
        "[...document.querySelectorAll('section.claim thead th')].filter(one => !/\\s/.test(one.textContent)).filter("
        "one => { const range = document.createRange(); range.selectNodeContents(one);"
        "return range.getClientRects().length > 1; }).map(one => one.textContent)"
    )

    assert broken == []


def test_the_reason_of_a_broken_test_is_seen_on_a_phone(browser, page):
    """It is below the name of the test, and not beside the edge of the screen."""
    browser.open(page, width=PHONE)
    right = browser.script(
        "[...document.querySelectorAll('#tests td:last-child')].map(one => one.getBoundingClientRect().right)"
    )

    assert right
    assert max(right) <= PHONE


def test_numbers_of_a_comparison_are_below_each_other(browser, page):
    """As those of a claim: each column ends at one place."""
    browser.open(page, width=SCREEN)
    aligned = browser.script(
        "[...document.querySelectorAll('section.compared .together > .wide td')]"
        ".map(one => getComputedStyle(one).textAlign)"
    )

    assert set(aligned) == {"right"}


def test_paper_is_not_left_empty(browser, page, tmp_path):
    """A claim begins below the one before it, so ten claims need no twenty sheets; no chart is cut in two."""
    browser.open(page, media="print", width=PAPER)
    sheets = browser.paper(tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n")
    claims = browser.script("document.querySelectorAll('section.claim').length")
    cut = browser.script("[...document.querySelectorAll('figure')].map(one => getComputedStyle(one).breakInside)")

    assert 5 < sheets < 2 * claims
    assert set(cut) == {"avoid"}


def test_the_answer_of_a_comparison_fits_a_phone(browser, tmp_path):
    """Its table and what differs in effect need no scrolling, also with a long reason; each figure has its column."""
    reason = "p95 needs rounds of 14.2 s here, 340 s in total, but 96 s are left; use more --seconds, or more --threads"
    made = compared_records()
    directory = comparison(tmp_path / "run", made, **compared_run(made, reason=reason))
    assert report_page.make(directory) == f"report: {directory}/index.html"
    browser.open(directory / "index.html", width=PHONE)
    fits = browser.script(
        "[...document.querySelectorAll('header .wide')].map(one => one.scrollWidth <= one.clientWidth)"
    )
    labels = browser.script(
        "[...document.querySelectorAll('.answers tr:nth-child(1) td[data-column]')]"
        ".map(one => getComputedStyle(one, '::before').content)"
    )

    assert fits == [True, True]
    assert "ratio (99.9 %)" in labels[2]
    assert browser.script("document.documentElement.scrollWidth") <= PHONE

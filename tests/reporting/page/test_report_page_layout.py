"""Where the parts of a page lie: nothing covers anything else, on a screen, on a phone and on paper."""

import itertools

import pytest

from pytest_dbcluster.reporting.page import report_page
from tests.support import browser as browsers
from tests.support.awkward import awkward

pytestmark = pytest.mark.skipif(browsers.program() is None, reason=browsers.INSTALL)
PHONE, SCREEN, PAPER = 390, 1280, 718  # pixels: of the narrowest phones in use, of a small laptop, of A4 in its margins
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


def test_no_text_of_a_chart_covers_another(browser, page):
    """Ticks, legends and labels of every chart."""
    browser.open(page, width=SCREEN)
    charts = browser.script(CHARTS)

    assert len(charts) > 20
    assert [pair for chart in charts for pair in covered(chart)] == []


def test_no_text_runs_out_of_its_chart(browser, page):
    """Also names of sixty letters, and the ratio of a counter."""
    browser.open(page, width=SCREEN)

    assert [said for chart in browser.script(CHARTS) for said in outside(chart)] == []

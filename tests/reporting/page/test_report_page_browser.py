"""The page as people see it: in a browser, light, dark and printed."""

import os
from pathlib import Path

import numpy
import pytest
from PIL import Image

from pytest_dbcluster.reporting.page import report_page
from tests.support import browser as browsers
from tests.support.results import a_sweep, results

pytestmark = pytest.mark.skipif(browsers.program() is None, reason=browsers.INSTALL)
KEPT = "DBCLUSTER_PICTURES"  # a directory in which pictures are kept, to be looked at
CLICK = "{bubbles: true, cancelable: true}"
BLUE, DARK_BLUE = (0, 114, 178), (58, 143, 208)  # of the candidate's rounds


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The file of a page of a run that was cut short, with every kind of claim and a sweep."""
    run = {"cut_short": "SIGTERM", "selected": 9}
    directory = results(tmp_path_factory.mktemp("page") / "run", sweeps=[a_sweep()], timelines=True, **run)
    assert report_page.make(directory) == f"report: {directory}/index.html"
    return directory / "index.html"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The directory of the pictures; that of KEPT where it is set."""
    directory = Path(os.environ[KEPT]) if KEPT in os.environ else tmp_path_factory.mktemp("pictures")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser without a window."""
    opened = browsers.Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def open_claims(browser):
    """The addresses of the claims that are not folded."""
    return browser.script("[...document.querySelectorAll('section.claim:has(> details[open])')].map(one => one.id)")


def share(path, colour):
    """The share of a picture's pixels in about this colour."""
    with Image.open(path) as picture:
        pixels = numpy.asarray(picture.convert("RGB"), dtype=int)
    return float((abs(pixels - colour) < 25).all(axis=2).mean())


@pytest.mark.parametrize(
    ("theme", "media", "paper", "blue"),
    [
        ("light", "screen", (254, 254, 254), BLUE),
        ("dark", "screen", (22, 25, 29), DARK_BLUE),
        ("dark", "print", (254, 254, 254), BLUE),
    ],
    ids=["light", "dark", "print"],
)
def test_a_refuted_claim_is_found_with_its_chart(browser, page, pictures, theme, media, paper, blue):
    """Its chart has the colours of the theme; print is light, whatever the reader's theme is."""
    browser.open(page, theme=theme, media=media, width=794 if media == "print" else 1150)
    if KEPT in os.environ:
        browser.picture(pictures / f"page-{media if media == 'print' else theme}.png")
    title = browser.script("document.querySelector('section.refuted h2').innerText")
    chart = browser.picture(pictures / f"refuted-{media}-{theme}.png", "section.refuted figure.chart svg")

    assert title == "✗ refuted flush_2 is not faster than galera3"
    assert share(chart, blue) > 0.001
    assert share(chart, paper) > 0.7


def test_no_request_leaves_and_no_script_fails(browser, page):
    """The page needs its own file alone."""
    browser.requests.clear()
    browser.open(page)
    for button in range(browser.script("document.querySelectorAll('button.copy').length")):
        browser.script(f"document.querySelectorAll('button.copy')[{button}].click()")

    assert browser.requests == [page.as_uri()]
    assert browser.errors == []


def test_the_command_is_copied(browser, page):
    """The button says so, by one way of the browser or the other."""
    browser.open(page)
    copied = browser.script(
        "new Promise(done => { document.addEventListener('copy', () => done(String(getSelection())));"
        "const button = document.querySelector('button.copy');"
        "new MutationObserver(() => done(button.textContent)).observe(button, {childList: true});"
        "button.click(); })"
    )

    assert copied in ("Copied", "pytest suites/galera --db-seed=813")


def test_the_overview_leads_to_each_claim(browser, page):
    """A name in the plot of all claims is a link to its details."""
    browser.open(page)
    links = browser.script(
        "[...document.querySelectorAll('#overview .wider svg a')]"
        ".map(a => a.getAttribute('xlink:href') || a.href.baseVal)"
    )

    assert len(links) == 6
    assert browser.script(f"{links}.every(link => document.querySelector(link) !== null)")


def test_nothing_is_wider_than_the_page(browser, page):
    """On a small screen tables and charts scroll by themselves, and the page does not."""
    for width in (400, 1150):
        browser.open(page, width=width)
        assert browser.script("document.documentElement.scrollWidth") <= width


def test_all_is_printed(browser, page, pictures):
    """Every claim is on paper."""
    browser.open(page, media="print", width=794)
    heights = browser.script("[...document.querySelectorAll('section.claim')].map(one => one.offsetHeight)")
    printed = browser.paper(pictures / "page.pdf").read_bytes()

    assert printed.startswith(b"%PDF")
    assert min(heights) > 300
    assert open_claims(browser) == ["claim1", "claim2", "claim3"]


def test_claims_that_need_no_attention_are_folded(browser, page):
    """Refuted and inconclusive claims are open; a folded one shows its answer, ratio and interval, and no chart."""
    browser.open(page)
    folded = browser.script(
        "[...document.querySelectorAll('section.claim > details:not([open])')]"
        ".map(one => [one.innerText, one.querySelector('figure').checkVisibility({contentVisibilityAuto: true})])"
    )

    assert open_claims(browser) == ["claim1", "claim2", "claim3"]
    assert [(said.splitlines()[0], seen) for said, seen in folded] == [
        ("✓ holds flush_2 is faster than galera3", False),
        ("✓ holds flush_2 is less than 5 % slower than galera3", False),
        ("= compared no difference between flush_2 and galera3 is shown", False),
    ]
    assert "mysqlslap write c50: 1.8" in folded[0][0]


@pytest.mark.parametrize("link", ["#contents a[href='#claim5']", "#overview .wider svg a[*|href='#claim5']"])
def test_a_link_opens_its_claim(browser, page, link):
    """From the contents and from the plot, also a second time after the reader has folded it."""
    browser.open(page)
    for _ in range(2):
        browser.script("document.querySelector('#claim5 > details').open = false")
        browser.script(f"document.querySelector({link!r}).dispatchEvent(new MouseEvent('click', {CLICK}))")

        assert open_claims(browser) == ["claim1", "claim2", "claim3", "claim5"]
    browser.script("new Promise(done => setTimeout(done, 100))")
    assert abs(browser.script("document.querySelector('#claim5').getBoundingClientRect().top")) < 2


def test_an_address_opens_its_claim(browser, page):
    """That of the page with a claim, as a colleague sends it."""
    browser.open(page, fragment="claim4")

    assert open_claims(browser) == ["claim1", "claim2", "claim3", "claim4"]


def test_a_claim_is_opened_with_the_keyboard_and_without_scripts(browser, page):
    """Tab reaches its heading, and Enter opens it."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        browser.script("document.querySelector('#claim4 > details > summary').focus()")
        for kind in ("keyDown", "keyUp"):
            browser.call(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
            )
        opened = open_claims(browser)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)

    assert opened == ["claim1", "claim2", "claim3", "claim4"]


def test_without_scripts_an_address_shows_its_claim(browser, page):
    """The claim is folded, and shown because the address names it."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page, fragment="claim4")
        heights = browser.script("[4, 5].map(one => document.querySelector(`#claim${one}`).offsetHeight)")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)

    assert heights[0] > 300 > heights[1]


def test_a_run_that_was_cut_short_says_so(browser, page):
    """A reader sees at the top that tests are missing."""
    browser.open(page)
    note = browser.script("document.querySelector('.note').innerText")

    assert note == "The run was cut short (SIGTERM): 6 of 9 tests ended."

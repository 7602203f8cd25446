"""Allure's page as people see it: made by Allure of a run's own results, in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.errors import DBClusterError
from pytest_dbcluster.reporting.allure import allure_page, program
from pytest_dbcluster.reporting.page import sources
from pytest_dbcluster.wait import until
from tests.support import browser as browsers
from tests.support.records import record
from tests.support.results import results
from tests.support.run_documents import TESTS

FAKE = Path(__file__).parents[2] / "support" / "fake_session.py"
KEPT = "DBCLUSTER_PICTURES"  # a directory in which pictures are kept, to be looked at
OPENINGS = 10
TEST = '''
import pytest
from pytest_dbcluster.spec import ClusterSpec

ON = [ClusterSpec("galera", nodes=3), ClusterSpec("galera", nodes=3, name="flush_2")]

@pytest.mark.parametrize("mode", ["write", "mixed"])
def test_holds(measure, mode):
    """Every kind of write is faster, by ½ and more."""
    default, flush_2 = measure(f"mysqlslap {mode}", on=ON)
    assert flush_2.beats(default)

def test_fails(measure):
    default, flush_2 = measure("mysqlslap write", on=ON)
    assert flush_2.scales(default, at_least=3)

def test_open(measure):
    default, flush_2 = measure("mysqlslap write", on=ON)
    assert flush_2.scales(default, at_least=1.501)

def test_dies(measure):
    default, flush_2 = measure("dies", on=ON)
    assert flush_2.beats(default)
'''
TITLES = "[...document.querySelectorAll('[data-testid=\"tree-leaf-title\"]')]"


def lacks():
    """What is missing for Allure's page; empty when nothing is."""
    if browsers.program() is None:
        return browsers.INSTALL
    if program.lookup() is None:
        return "needs Allure in the cache: dbcluster fetch allure"
    try:
        program.node()
    except DBClusterError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(lacks()), reason=lacks())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of a run on two releases, and the page as Allure made it."""
    directory = tmp_path_factory.mktemp("allure")
    (directory / "conftest.py").write_text(FAKE.read_text())
    (directory / "test_it.py").write_text(TEST)
    plugins = ["-p", "pytest_dbcluster.plugin.hooks", "-p", "allure_pytest", "-p", "no:cacheprovider"]
    words = ["--db-release=mariadb:10.11", "--db-release=mariadb:11.8", "--db-max-pairs=12", "--db-seed=1"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={directory}", *plugins, *words, "test_it.py"],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "6 failed" not in done.stdout
    latest = directory / "reports" / "latest"
    generate, raw = program.generate, directory / "raw.html"

    def generated(*given):
        raw.write_text(generate(*given), encoding="utf-8")
        return raw.read_text(encoding="utf-8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "generate", generated)
        assert main.main(["report", str(latest), "--allure"]) == 0, done.stdout
    return latest / "allure.html", raw


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


def opened(browser, page):
    """Open a page and wait until its tests are listed; return their names."""
    browser.call("Page.navigate", url="about:blank")
    browser.open(page)
    until(lambda: [] if browser.script(f"{TITLES}.length") else ["no test is listed"], "the page", seconds=30)
    return browser.script(f"{TITLES}.map(one => one.innerText)")


def shown(browser, test):
    """Open a test of the page and return the document of its description."""
    browser.script(f"{TITLES}.find(one => one.innerText.startsWith('{test}')).click()")
    frame = "document.querySelector('iframe[data-testid=\"test-result-description-frame\"]')"
    image = f"{frame}?.contentDocument?.querySelector('img')"
    until(lambda: [] if browser.script(f"Boolean({image}?.naturalWidth)") else ["no chart"], "the chart", seconds=30)
    return f"{frame}.contentDocument"


def leaving(browser):
    """The addresses that were asked for and lie in no file and in no page."""
    return [
        address[:200] for address in browser.requests if not address.startswith(("file:", "data:", "blob:", "about:"))
    ]


@pytest.fixture(scope="module")
def green(made):
    """The page of the same run without what did not pass."""
    page, _ = made
    latest = page.parent
    for path in (latest / "allure-results").glob("*-result.json"):
        if '"status": "passed"' not in path.read_text():
            path.unlink()
    read = sources.read_all([latest])
    allure_page.make(read, latest / "green.html", program.directory(), print)
    return latest / "green-allure.html"


def test_tests_that_passed_are_listed_as_well(browser, green):
    """Allure folds folders in which all tests passed, so there are none."""
    names = [name.partition(": ")[0] for name in opened(browser, green)]

    assert names == ["test_holds[write]", "test_holds[mixed]"] * 2


PLAIN = {"status": "passed", "historyId": "it", "testCaseId": "it", "fullName": "test_it.py::test_plain"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The page of two directories, each with the same test, which has no release."""
    directory = tmp_path_factory.mktemp("both")
    for number, name in enumerate(("old", "new")):
        made = results(directory / name, [record(pairs=0, test=TESTS[0].test)])
        text = json.dumps({**PLAIN, "uuid": f"plain{number}", "name": "test_plain", "start": number, "stop": 9})
        (made / "allure-results").mkdir()
        (made / "allure-results" / f"plain{number}-result.json").write_text(text)
    read = sources.read_all([directory / "old", directory / "new"])
    allure_page.make(read, directory / "both.html", program.directory(), print)
    return directory / "both-allure.html"


def test_a_test_of_two_directories_is_no_retry(browser, both):
    """A test without a release, such as one that measures nothing, is listed once for each directory."""
    names = opened(browser, both)
    browser.script(f"{TITLES}[0].click()")
    tabs = "[...document.querySelectorAll('[data-testid^=\"test-result-tab-\"]')].map(tab => tab.innerText)"
    shown = lambda: [" ".join(tab.split()) for tab in browser.script(tabs)]  # noqa: E731
    until(lambda: [] if "Environments 2" in shown() else [f"{shown()}"], "both environments", seconds=30)

    assert names == ["test_plain"] * 2
    assert "Retries" in shown()  # without a number


def test_the_bar_leads_to_the_page_of_the_run_wherever_both_lie(browser, made, tmp_path):
    """Its link is relative: a directory that was moved, and opened as a file, leads to its own page."""
    moved = tmp_path / "moved here, and back"
    shutil.copytree(made[0].parent, moved)
    opened(browser, moved / "allure.html")
    browser.script("document.querySelector('#dbcluster a').click()")
    page = (moved / "index.html").as_uri()

    def here():
        try:
            return browser.script("location.href")
        except AssertionError:  # the old page is gone, and the new one is not there yet
            return ""

    until(lambda: [] if here() == page else ["no page"], "the link", seconds=30)

    assert browser.script("document.querySelector('h1').innerText").startswith("4 of 8 claims hold")


def test_ten_openings_show_all_tests_and_ask_nobody(browser, made):
    """None stays blank, no request leaves, and no script fails."""
    page, _ = made
    browser.requests.clear()
    listed = [len(opened(browser, page)) for _ in range(OPENINGS)]

    assert listed == [10] * OPENINGS
    assert leaving(browser) == []
    assert browser.errors == []


def test_a_request_that_leaves_is_noticed(browser, made):
    """The page as Allure makes it asks a service, and the browser notes it."""
    _, raw = made
    browser.requests.clear()
    browser.open(raw)

    assert len(leaving(browser)) == 1
    browser.errors.clear()


def test_the_bar_is_dark_where_allure_is(browser, made, pictures):
    """A white bar above a dark page dazzles."""
    browser.call("Page.navigate", url="about:blank")
    browser.open(made[0], theme="dark")
    colour = browser.script("getComputedStyle(document.querySelector('#dbcluster')).backgroundColor")
    browser.picture(pictures / "allure-dark.png", "html")

    assert max(map(int, re.findall(r"\d+", colour))) < 60


def test_the_list_shows_each_test_with_its_ratio(browser, made, pictures):
    """By release; the state of an inconclusive one is in its name, because Allure calls it unknown."""
    names = opened(browser, made[0])
    browser.picture(pictures / "allure-list.png", "html")
    before = [name.partition(": ")[0] for name in names]

    assert before == ["test_holds[write]", "test_holds[mixed]", "test_fails", "test_open", "test_dies"] * 2
    assert names[0].startswith("test_holds[write]: 1.")
    assert names[3].startswith("test_open: inconclusive: 1.")
    assert browser.script("document.querySelector('#dbcluster a').href") == (made[0].parent / "index.html").as_uri()


def test_a_refuted_test_shows_its_sentence_and_its_chart(browser, made, pictures):
    """Nothing must be opened but the test; the other release stands beside it, and no other test."""
    opened(browser, made[0])
    document = shown(browser, "test_fails")
    browser.picture(pictures / "allure-refuted.png", "html")
    environments = "document.querySelector('[data-testid=\"test-result-tab-environments\"]').innerText"

    assert browser.script(f"{document}.querySelector('h3').innerText").startswith(
        "✗ refuted: flush_2 is not more than 3"
    )
    assert browser.script(f"{document}.querySelector('img').getBoundingClientRect().height") > 300
    assert browser.script(environments).split() == ["Environments", "2"]


def test_a_docstring_is_shown_as_it_is_written(browser, made):
    """Also what is not ASCII: the character set is known before the data."""
    opened(browser, made[0])

    assert browser.script(f"{shown(browser, 'test_holds[write]')}.body.innerText").startswith(
        "Every kind of write is faster, by ½ and more.\n"
    )

"""Allure's page as Allure makes it of a run's own results: the data in it, and how a browser shows it."""

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.errors import DBClusterError, ProvisionError
from pytest_dbcluster.reporting.allure import allure_page, program
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.page import sources
from pytest_dbcluster.wait import until
from tests.support import browser as browsers
from tests.support.records import record
from tests.support.results import results

FAKE = Path(__file__).parents[2] / "support" / "fake_session.py"
KEPT = "DBCLUSTER_PICTURES"  # a directory in which pictures are kept, to be looked at
# Runs the scripts with the data half a second after the page is there. Slow browsers run Allure's program before them.
LATER = """<script>
setTimeout(() => document.querySelectorAll("script.late").forEach(late => {
  const script = document.createElement("script");
  script.text = late.textContent;
  document.body.append(script);
}), 500);
</script>"""
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
# All claims have one chart, so the run need not import matplotlib.
CHART = """
from pathlib import Path

chart = Path(__file__).with_name("chart.svg").read_text()
PATCHES["pytest_dbcluster.reporting.charts.claim.svg"] = lambda *given, **more: chart
"""
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


LACKS = lacks()

pytestmark = pytest.mark.skipif(bool(LACKS), reason=LACKS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of a run on two releases, and the page as Allure made it."""
    directory = tmp_path_factory.mktemp("allure")
    (directory / "conftest.py").write_text(FAKE.read_text() + CHART)
    (directory / "chart.svg").write_text(chart := claim_chart.svg(record()))
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
        patch.setattr(claim_chart, "svg", lambda *given, **more: chart)
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


def late(page):
    """A copy of the page whose data come late."""
    text, number = re.subn("<script (?:async|defer)>", '<script type="text/plain" class="late">', page.read_text())
    assert number == 2
    copy = page.with_name(f"late-{page.name}")
    copy.write_text(text.replace("</body>", f"{LATER}</body>"))
    return copy


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


def data(page):
    """The data in a page, by name."""
    found = re.findall(r'd\("([^"]+\.json)","([^"]*)"\)', page.read_text())
    return {name: json.loads(base64.b64decode(text)) for name, text in found}


def cases(page):
    """The tests of a page."""
    return [one for name, one in data(page).items() if name.startswith("data/test-results/")]


def test_only_the_call_of_the_service_is_taken_out(made):
    """Allure's own page calls one; programs and data stay as they were."""
    page, raw = (path.read_text() for path in made)
    scripts = re.compile(r"<script.*?</script>", re.DOTALL)
    before, after = (scripts.findall(text) for text in (raw, page))

    assert ["https://www.googletagmanager.com" in script for script in before].count(True) == 1
    assert after == [allure_page.WAIT, *(one for one in before if "googletagmanager" not in one and "gtag" not in one)]


@pytest.mark.parametrize("mark", ['<script async src="https://', 'charset="utf-8"'])
def test_a_page_of_another_shape_is_refused(made, mark):
    """It might ask the network for something, or stay blank."""
    with pytest.raises(ProvisionError, match=r"page with another structure than that of version 3\.18\.0"):
        allure_page.repair(made[1].read_text().replace(mark, "changed"))


def test_the_metadata_say_what_the_run_found_and_where_its_own_page_is(made):
    """Allure shows them above the list of tests; its links take only whole addresses."""
    shown = {one["name"]: one["values"] for one in data(made[0])["widgets/allure_environment.json"]}

    assert list(shown)[:2] == ["page of the run", "claims"]
    assert shown["page of the run"] == ["index.html"]
    assert shown["claims"][0].startswith(
        "2 of 8 claims are refuted, 2 are inconclusive, 4 hold; refuted: flush_2 is not more than 3 times"
    )


def test_the_figures_of_a_claim_are_metrics(made):
    """Ratio, interval and medians with units; one group for each claim, and a sample for each release."""
    page = made[0]
    [group] = {one["group"] for one in data(page)["widgets/metrics.json"]["current"] if "test_fails" in one["group"]}
    found = [one for one in data(page)["widgets/metrics.json"]["current"] if one["group"] == group]
    [record] = [one for one in sources.read(page.parent).claims if one.claim_id == group and "10.11" in one.release]
    shown = {one["title"].removeprefix("mariadb:10.11: "): (one["value"], one["unit"]) for one in found}

    assert shown["ratio"] == (record.verdict.ratio, "x")
    assert shown["ratio, from"] == (record.verdict.low, "x")
    assert shown["ratio, to"] == (record.verdict.high, "x")
    assert shown["throughput of flush_2, median"] == (pytest.approx(3000, rel=0.05), "/s")
    assert shown["throughput of galera3, median"] == (pytest.approx(2000, rel=0.05), "/s")
    assert len({one["key"] for one in found}) == len(found) == 10
    assert '"sections":["charts","timeline","metrics"]' in page.read_text()


def test_tests_that_passed_are_listed_as_well(made):
    """Allure folds folders in which all tests passed, so there are none."""
    tree = data(made[0])["widgets/environment_0/tree.json"]

    assert tree["groupsById"] == {}
    assert len(tree["root"]["leaves"]) == 5


PLAIN = {"status": "passed", "historyId": "it", "testCaseId": "it", "fullName": "test_it.py::test_plain"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The page of two directories, each with the same test, which has no release."""
    directory = tmp_path_factory.mktemp("both")
    for number, name in enumerate(("old", "new")):
        made = results(directory / name, [record(claim_id="test_flush | beats")])
        text = json.dumps({**PLAIN, "uuid": f"plain{number}", "name": "test_plain", "start": number, "stop": 9})
        (made / "allure-results").mkdir()
        (made / "allure-results" / f"plain{number}-result.json").write_text(text)
    read = sources.read_all([directory / "old", directory / "new"])
    allure_page.make(read, directory / "both.html", program.directory(), print)
    return directory / "both-allure.html"


@pytest.mark.thorough
def test_a_test_of_two_directories_is_no_retry(both):
    """A test without a release, such as one that measures nothing, is listed once for each directory."""
    plain = [one for one in cases(both) if one["name"] == "test_plain"]

    assert [one["retriesCount"] for one in plain] == [0, 0]
    assert {one["environment"] for one in plain} == {"old", "new"}


@pytest.mark.thorough
def test_the_figures_of_two_directories_are_kept_apart(both):
    """Allure would show the mean of samples with one key."""
    found = data(both)["widgets/metrics.json"]["current"]

    assert {one["title"] for one in found if one["title"].endswith("ratio")} == {
        "mariadb:10.11, old: ratio",
        "mariadb:10.11, new: ratio",
    }
    assert len({one["key"] for one in found}) == len(found) == 10


def test_all_tests_are_shown_and_nobody_is_asked(browser, made, pictures):
    """No request leaves, and no script fails."""
    browser.requests.clear()
    names = opened(browser, made[0])
    if KEPT in os.environ:
        browser.picture(pictures / "allure-list.png", "html")
    before = [name.partition(": ")[0] for name in names]

    assert before == ["test_holds[write]", "test_holds[mixed]", "test_fails", "test_open", "test_dies"] * 2
    assert names[0].startswith("test_holds[write]: 1.")
    assert names[3].startswith("test_open: inconclusive: 1.")
    assert leaving(browser) == []
    assert browser.errors == []


def test_a_slow_browser_shows_all_tests(browser, made):
    """Allure's program waits for its data, and asks for no file."""
    browser.requests.clear()
    names = opened(browser, late(made[0]))

    assert len(names) == 10
    assert [address for address in browser.requests if ".json" in address] == []
    assert browser.errors == []


def test_the_page_as_allure_makes_it_stays_blank_in_a_slow_browser(browser, made):
    """Its program asks for files that are not there."""
    browser.requests.clear()
    browser.open(late(made[1]))
    asked = lambda: [] if any(".json" in one for one in browser.requests) else [browser.script("document.title")]  # noqa: E731
    until(asked, "a file that is asked for", seconds=30)

    assert browser.script(f"{TITLES}.length") == 0
    browser.errors.clear()


def test_a_request_that_leaves_is_noticed(browser, made):
    """The page as Allure makes it asks a service, and the browser notes it."""
    browser.requests.clear()
    browser.open(made[1])

    assert len(leaving(browser)) == 1
    browser.errors.clear()


def test_a_test_shows_its_docstring_its_sentence_and_its_chart(browser, made, pictures):
    """Allure cleans descriptions in the browser; what is not ASCII and the chart stay."""
    opened(browser, made[0])
    document = shown(browser, "test_holds[write]")
    if KEPT in os.environ:
        browser.picture(pictures / "allure-test.png", "html")
    said = browser.script(f"{document}.body.innerText")

    assert said.startswith("Every kind of write is faster, by ½ and more.\n")
    assert "✓ holds: flush_2 is faster than galera3" in said
    assert browser.script(f"{document}.querySelector('img').getBoundingClientRect().height") > 300

"""The page as text, and its file."""

import dataclasses
import html
import html.parser
import re
import tempfile
from pathlib import Path

import pytest

from pytest_dbcluster import reasons
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.page import report_page, sources
from tests.support import users
from tests.support.facts import missing
from tests.support.observations import unindexed_comparison
from tests.support.records import failed, record, undecided
from tests.support.results import a_sweep, results


class Texts(html.parser.HTMLParser):
    """The texts of a page by the id of the section that they stand in, and every address that it names.

    links: the addresses of ``a`` elements of HTML, which load nothing before a reader follows them.
    """

    def __init__(self, text):
        super().__init__()
        self.sections, self.addresses, self.links, self._place = {"": ""}, [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Note where a section begins, and what would load or lead somewhere."""
        given = dict(attrs)
        if tag == "section":
            self._place = given["id"]
            self.sections[self._place] = ""
        if tag == "a" and "href" in given:
            self.links.append(given.pop("href"))
        names = ("href", "src", "xlink:href", "srcset", "action", "data", "ping")
        self.addresses += [given[name] for name in names if name in given]

    def handle_data(self, data):
        """Add the text to its section."""
        self.sections[self._place] += f" {data.strip()}" if data.strip() else ""


@pytest.fixture(scope="module", autouse=True)
def at_home():
    """A run that is not a CI job: its page has links to files of the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reasons, "CI", ())
        yield


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The text of a page with every kind of claim, a sweep, and broken and skipped tests."""
    directory = results(tmp_path_factory.mktemp("page") / "run", sweeps=[a_sweep()], timelines=True)
    return report_page.html(sources.read_all([directory]))


@pytest.fixture
def uncharted(monkeypatch):
    """The claims of the page have no charts."""
    monkeypatch.setattr(claim_chart, "svg", lambda made, *given, **named: None)


@pytest.fixture(scope="module")
def texts(page):
    """The page's texts."""
    return Texts(page)


def test_the_sentence_comes_first(texts):
    """It counts the claims, and says what was refuted, in words."""
    facts = (
        "1 of 5 claims is refuted, 2 are inconclusive, 2 hold",
        "flush_2 is not faster than galera3 (mysqlslap update c50)",
        "1 test is broken",
    )

    assert all(fact in texts.sections[""] for fact in facts)


def test_a_sentence_has_one_full_stop(texts):
    """The chance that any claim is wrong is a sentence too."""
    said = texts.sections[""]

    assert "if rounds are independent." in said
    assert "independent.." not in said


def test_sixty_claims_are_a_page_of_less_than_ten_megabytes(page):
    """Shown with a tenth of them, each with its timeline."""
    assert len(page.encode()) < 10_000_000 / 10
    assert page.count('<section class="claim') == 60 / 10


def test_the_page_says_what_was_run(texts):
    """Machine, release, commit, and the version of the plugin."""
    for said in ("2 x a CPU (1.5 usable), 8.0 GiB", "ext4 on /dev/vda", "4fd14fd14fd1", "mariadb:10.11 10.11.19"):
        assert said in texts.sections[""]
    assert " pytest-dbcluster 0.1.0 " in texts.sections[""]
    assert " Where the time went: rounds 41 % (123 s) starts 20 % (60 s) " in texts.sections[""]


def test_refuted_claims_come_before_those_that_hold(texts):
    """What needs attention is seen first."""
    words = ["refuted", "inconclusive", "inconclusive", "holds", "holds", "compared"]

    for number, word in enumerate(words, 1):
        assert f" {word} " in texts.sections[f"claim{number}"][:40]


def groups(text):
    """The groups of claims in the contents of a page: whether each is open, its title, and the claims that it names."""
    nav = text[text.index('<nav id="contents"') : text.index("</nav>")]
    return [
        (bool(shown), title, re.findall(r'href="#(claim[0-9]+)"', links))
        for shown, title, links in re.findall(
            r"<details( open)?>\s*<summary>(.*?)</summary>(.*?)</details>", nav, re.DOTALL
        )
    ]


def test_the_contents_name_each_claim_by_state(page):
    """In the order of the page, with the other parts of the page before them."""
    nav = page[page.index('<nav id="contents"') : page.index("</nav>")]

    assert groups(page) == [
        (True, "✗ 1 refuted", ["claim1"]),
        (True, "? 2 inconclusive", ["claim2", "claim3"]),
        (True, "✓ 2 hold", ["claim4", "claim5"]),
        (True, "= 1 compared", ["claim6"]),
    ]
    assert re.findall(r'href="#([a-z]+)"', nav) == ["tests", "overview", "sweeps"]


def test_contents_fold_many_claims_that_hold(tmp_path, uncharted):
    """What needs attention is not below a long list."""
    made = [*(record(load=f"load {number}") for number in range(9)), failed()]
    shown = groups(report_page.html(sources.read_all([results(tmp_path / "run", made)])))

    assert [(is_open, title) for is_open, title, _ in shown] == [(True, "✗ 1 refuted"), (False, "✓ 9 hold")]
    assert len(shown[1][2]) == 9


def test_a_page_of_very_many_claims_shows_the_first_ones(tmp_path, uncharted, monkeypatch):
    """Refuted claims come first, so those that hold are left out. A note says how many are shown."""
    monkeypatch.setattr(report_page, "MOST", 2)
    made = [record(load=f"mysqlslap write c{number}") for number in range(3)]
    found = Texts(report_page.html(sources.read_all([results(tmp_path / "run", [*made, failed()])])))

    assert {name for name in found.sections if name.startswith("claim")} == {"claim1", "claim2"}
    assert "mysqlslap update c50" in found.sections["claim1"]
    assert not missing(" ".join(found.sections.values()), "2 of 4 claims are shown here", "claims.jsonl")
    assert not [link for link in found.links if link.startswith(("#claim3", "#claim4"))]


def test_a_claim_on_files_names_their_content(tmp_path, uncharted):
    """Two runs with other files have other digests. A workload without files has none."""
    made = [record(load="sql shop t8", content="0b813aadf6"), record(load="tpcc w1 t4")]
    shown = report_page.html(sources.read_all([results(tmp_path / "run", made)]))

    assert "on sql shop t8, files 0b813aadf6" in shown
    assert "on tpcc w1 t4, files" not in shown


def test_a_page_of_few_claims_folds_none(tmp_path, uncharted):
    """Three claims need no contents."""
    made = [record(load=f"load {number}") for number in range(3)]
    text = report_page.html(sources.read_all([results(tmp_path / "run", made)]))

    assert 'id="contents"' not in text
    assert re.findall(r'<section class="claim holds" id="claim[0-9]">\s*<details(.*?)>', text) == [" open"] * 3


def test_a_claim_has_all_that_explains_it(texts):
    """Ratio, published, difference, medians, percentiles, causes, nodes, variables, durability, command."""
    said = texts.sections["claim4"]

    for part in (
        "flush_2 is faster than galera3", "on mysqlslap write c50 (8 tables of 100000 rows, about 199 MiB)",
        "published 7.41", "outside the interval", "median, operations / s",
        "seconds since the first round began", "pairs of rounds", "p99.9", "fsyncs per commit", "node2",
        "innodb_flush_log_at_trx_commit", "a commit survives with", "pytest suites/galera --db-seed=813", "Copy",
        "Noise, errors and all other figures", "Every second", "CPU, cores", "a round of galera3",
    ):  # fmt: skip
        assert part in said


def test_void_rounds_have_their_reason(texts):
    """A reader sees that rounds were drawn again, and why."""
    assert "Void, and measured again: galera3: node2 left the cluster" in texts.sections["claim1"]


def test_an_open_claim_says_what_it_needs(texts):
    """The next step is named, and the page with more about it is a link."""
    advice = reasons.advice("budget of 120 s of measured time used (--db-budget)")

    assert "needs about" in texts.sections["claim2"]
    assert f"What to do: {advice.text} {advice.address} " in texts.sections["claim2"]
    assert texts.links.count(advice.link) == 2  # of two inconclusive claims


def test_sweeps_and_tests_without_an_answer_are_shown(texts):
    """Each with its reason or its table."""
    assert "sysbench oltp_read_only over threads" in texts.sections["sweeps"]
    assert "median and its 95 % interval, 1 warehouse, about 96 MiB, " in texts.sections["sweeps"]
    assert "threads=64: the load generator set the speed" in texts.sections["sweeps"]
    assert "test_flush.py::test_nodes ! broken node2 ended on its own" in texts.sections["tests"]


def test_nothing_is_loaded_from_elsewhere(texts, page):
    """Every address leads to a place in the page, and the browser is told to load nothing.

    The only links that leave the page are those beside the advice for an inconclusive claim.
    """
    advice = reasons.advice("budget of 120 s of measured time used (--db-budget)")

    assert texts.addresses
    assert [one for one in texts.addresses if not one.startswith("#")] == []
    assert {one for one in texts.links if not one.startswith("#")} == {advice.link}
    assert "default-src 'none'" in page
    assert re.findall(r"url\((?!#)", page) == []


def test_every_reference_has_its_target(page):
    """Charts of one page do not take each other's identifiers."""
    ids = re.findall(r'\bid="([^"]+)"', page)
    used = {*re.findall(r"url\(#([^)]+)\)", page), *re.findall(r'xlink:href="#([^"]+)"', page)}

    assert len(ids) == len(set(ids))
    assert used <= set(ids)


def test_texts_of_users_stay_texts(tmp_path):
    """A name with markup in it is shown, and does nothing."""
    evil = "<script>alert(1)</script>"
    made = record(load=evil, test=evil, message=evil, repeat=evil, text=evil, durability={"flush_2": evil})
    text = report_page.html(sources.read_all([results(tmp_path / "run", [made])]))

    assert evil not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5


def test_a_broken_test_links_to_the_advice_for_its_reason(tmp_path, uncharted):
    """Its row has what to do, with the page; a test with another reason has only the reason."""
    reason = "cluster galera3 failed before a round: node1 logged: [ERROR] <it>"
    tests = (TestDocument("test_a", "broken", reason, 1.0), TestDocument("test_b", "broken", "node2 ended", 1.0))
    texts = Texts(report_page.html(sources.read_all([results(tmp_path / "run", [record()], tests=tests)])))
    advice = reasons.advice(reason)

    assert f"{reason} What to do: {advice.text} {advice.address} " in texts.sections["tests"]
    assert [one for one in texts.links if not one.startswith("#")] == [advice.link]


@pytest.mark.parametrize("address", ['/docs/"><script>alert(1)</script>', "javascript:alert(1)", "docs/page.html"])
def test_an_address_that_is_no_page_is_text(tmp_path, monkeypatch, address, uncharted):
    """Markup in a path ends no attribute, and only files and web pages are links."""
    monkeypatch.setattr(reasons, "address", lambda found: address)
    text = report_page.html(sources.read_all([results(tmp_path / "run", [undecided()])]))
    file = ["file:///docs/%22%3E%3Cscript%3Ealert%281%29%3C/script%3E"] if address.startswith("/") else []

    assert "<script>alert(1)" not in text
    assert html.escape(address) in text.replace("&#34;", "&quot;")
    assert [one for one in Texts(text).links if not one.startswith("#")] == file


@pytest.mark.parametrize("missing", ["run.json", "rounds", "charts", "timeline"])
def test_what_is_missing_is_left_out(tmp_path, missing, uncharted):
    """A page needs claims alone; older runs and copies in part have a page too."""
    directory = results(tmp_path / "run", [record()], timelines=True)
    path = directory / missing
    path.unlink() if path.is_file() else [*map(Path.unlink, path.iterdir()), path.rmdir()]

    assert report_page.make(directory) == f"report: {directory}/index.html"


def test_a_page_of_two_runs_names_them(tmp_path, uncharted):
    """Each claim says where it is from, and the claims stand side by side."""
    both = [results(tmp_path / name, [record()]) for name in ("first", "second")]
    texts = Texts(report_page.html(sources.read_all(both)))

    assert f"{tmp_path}/second" in texts.sections["claim2"]
    for name in ("first", "second"):
        assert f"✓ flush_2.beats(galera3), mysqlslap write c50, {name}" in texts.sections["overview"]
    assert f"Claims by run claim load {tmp_path}/first {tmp_path}/second" in texts.sections["by-run"]
    assert "All 2 claims hold; 2 tests are broken." in texts.sections[""]


def test_one_run_on_one_release_has_no_table_of_releases(texts):
    """A section without content is left out."""
    assert "releases" not in texts.sections
    assert "history" not in texts.sections


@pytest.mark.parametrize("lost", ["claims.jsonl", "run.json"])
def test_a_page_that_cannot_be_made_is_a_sentence(tmp_path, lost, uncharted):
    """The results stay as they are, and the sentence says how to try again."""
    directory = results(tmp_path / "run", [record()])
    (directory / lost).write_text("{}\n")
    line = report_page.make(directory)

    assert line.startswith(f"no page: {directory}/{lost}")
    assert f"`dbcluster report {directory}`" in line


def test_an_error_of_the_page_ends_no_run(tmp_path, monkeypatch, uncharted):
    """Whatever fails in it."""
    monkeypatch.setattr(report_page, "html", lambda *given: 1 / 0)
    line = report_page.make(results(tmp_path / "run", [record()]))

    assert line.startswith("no page: ZeroDivisionError: division by zero; ")


def test_missing_packages_are_named(tmp_path, monkeypatch):
    """With the command that installs them."""
    monkeypatch.setattr(drawing, "available", lambda: False)

    assert report_page.make(tmp_path) == ("no page: matplotlib is not installed; pip install 'pytest-dbcluster[plots]'")


def test_a_page_replaces_a_link_and_not_its_target(tmp_path):
    """Somebody may have put a link there."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "index.html").symlink_to(tmp_path / "mine")
    report_page.write("page", tmp_path / "index.html")

    assert (tmp_path / "mine").read_text() == "mine"
    assert (tmp_path / "index.html").read_text() == "page"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", "mine"]


@pytest.mark.skipif(bool(users.missing()), reason=users.missing())
def test_a_directory_of_another_user_is_not_written(tmp_path):
    """Not even by root: the page goes elsewhere."""
    import os

    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, users.ALICE, users.ALICE)

    with pytest.raises(ConfigError, match=f"theirs belongs to user {users.ALICE}; give --output FILE"):
        report_page.write("page", theirs / "index.html")
    assert list(theirs.iterdir()) == []


@pytest.mark.skipif(bool(users.missing()), reason=users.missing())
@pytest.mark.parametrize("closed", ["theirs/run", "theirs"])
def test_results_of_another_user_that_are_closed_are_a_sentence(closed):
    """The message names what could not be read, also where a directory above it is closed."""
    with tempfile.TemporaryDirectory() as place:  # one that others may enter, which tmp_path is not
        Path(place).chmod(0o755)
        (Path(place) / "theirs").mkdir(mode=0o755)
        directory = results(Path(place) / "theirs" / "run", [record()])
        (Path(place) / closed).chmod(0o700)
        program = "import sys; from pytest_dbcluster.reporting.page import report_page\n"
        program += "from pathlib import Path; print(report_page.make(Path(sys.argv[1])))"
        loads = ("pytest_dbcluster.reporting.page.report_page", "jinja2", "matplotlib.figure")
        said = users.run(users.ALICE, program, directory, loads=loads)

    assert said.startswith(f"no page: cannot read {directory}")
    assert "Permission denied" in said


def test_what_servers_did_is_folded(tmp_path, uncharted):
    """A claim with extra rounds has its largest differences and tables; a claim without them has no such part."""
    made = [failed(servers=unindexed_comparison()), record()]
    found = Texts(text := report_page.html(sources.read_all([results(tmp_path / "run", made)]))).sections

    title = "What differs on the servers: plans, statements, waits, status and CPU"
    assert missing(found["claim1"], title, "Statements whose plan differs", *made[0].servers.largest) == []
    facts = ("most different: read_rows, 0.04 v 0.8 ms", "more on unindexed; blue: more on indexed")
    assert missing(found["claim1"], *facts) == []
    assert f"<details><summary>{title}" in text
    assert 'aria-label="CPU time of the servers by function"' in text
    assert title not in found["claim2"]


def test_a_comparison_without_cpu_samples_has_the_reason(tmp_path, uncharted):
    """In place of the flame graph."""
    unsampled = dataclasses.replace(unindexed_comparison(), stacks=(), no_stacks="perf is not installed")
    text = report_page.html(sources.read_all([results(tmp_path / "run", [failed(servers=unsampled)])]))

    assert "No CPU time by function: perf is not installed." in text
    assert "Each function is above the one that called it" not in text


def test_a_page_without_claims_needs_no_chart(tmp_path, monkeypatch):
    """So it does not wait for the import of matplotlib."""
    monkeypatch.setattr(drawing, "chart_style", None)
    run = sources.read_all([results(tmp_path, [])])

    assert "<html" in report_page.html(run)

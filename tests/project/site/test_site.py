"""The site: it builds, every name that a user can write has its entry, and its examples are collected by pytest."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_dbcluster
from pytest_dbcluster import reasons, registry, spec
from pytest_dbcluster.claims.claim import KINDS
from pytest_dbcluster.cli import main
from pytest_dbcluster.plugin import command_line
from pytest_dbcluster.releases import catalogue
from pytest_dbcluster.rounds import counters, metrics
from pytest_dbcluster.workloads.workload import Workload
from tests.support.conftests import PLAIN
from tests.support.published import FLUSH, claim_of, copied, stored
from tests.support.records import record, undecided
from tests.support.results import results

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "generated"} & set(path.parts))
DIRECTIVE = re.compile(r"^(`{3,})\{([a-z]+)\} ([^\n]+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^(`{3,}|:{3,})([^\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
WORDS = 20  # of a sentence
# Pages that only include a file of the root.
INCLUDING = {"changelog.md", "contributing.md", "security.md"}
# As ``python -m sphinx``, with fewer looks for garbage: nearly all that a build makes stays until its end.
BUILD = "import gc, sys; gc.set_threshold(50_000, 50); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
# The index of the search and the theme's navigation take half of the time of a build, and no text of a page.
BARE = "from sphinx.builders.html import StandaloneHTMLBuilder as Pages; Pages.search = False; "
BARE_THEME = ("-D", "html_theme=basic")
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def docs(known, tmp_path_factory):
    """A copy of the pages with another stored result, which is inconclusive. The site is built from it.

    The build treats each warning as an error, also for the link of a reason, and loads nothing.
    """
    place = tmp_path_factory.mktemp("site")
    root, claim = place / "root", claim_of(known, "flush_2.beats(galera3)")
    copied(root)
    stored(known, place, undecided(claim_id=claim.claim_id), into=root / "docs" / "published" / "results")
    built(BARE + BUILD, *BARE_THEME, "-d", place / "doctrees", root / "docs", root / "html")
    return root / "docs"


def built(program, *words):
    """Build a site with these options of Sphinx; each warning is an error."""
    command = [sys.executable, "-c", program, "-W", "-n", "--keep-going", "-q", *map(str, words)]
    environment = {**os.environ, **NO_NETWORK}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(docs):
    """The directory of the built site."""
    return docs.with_name("html")


@pytest.fixture(scope="module")
def entries(docs):
    """Kind -> name -> text of every entry of the reference, also of what the build writes."""
    found = {}
    for path in (docs / "reference").rglob("*.md"):
        for _, kind, name, text in DIRECTIVE.findall(path.read_text()):
            found.setdefault(kind, {})[name.split()[0]] = text
    return found


def options():
    """Every ``--db-...`` option there is."""
    names = set()
    command_line.add_options(lambda _: lambda name, **_: names.add(name))
    return names


def own(kind):
    """The names of a kind that this package implements."""
    return {name for name, module in registry.names(kind).items() if module.startswith("pytest_dbcluster.")}


def workloads():
    """The public workloads."""
    public = {name: getattr(pytest_dbcluster, name) for name in pytest_dbcluster.__all__}
    return {name for name, one in public.items() if inspect.isclass(one) and issubclass(one, Workload)} - {"Workload"}


def claims():
    """The methods and functions with which a test makes a claim or a comparison."""
    return {"against" if kind.claims_nothing else name for name, kind in KINDS.items()}


def variables():
    """The environment variables of the plugin that users set."""
    texts = [path.read_text() for path in (ROOT / "pytest_dbcluster").rglob("*.py")]
    ours = {name for text in texts for name in re.findall(r'"(DBCLUSTER_[A-Z_]+)"', text)}
    # The plugin sets these for the processes that it starts.
    return ours - {"DBCLUSTER_RUN", "DBCLUSTER_HOST"}


NAMES = {
    "option": options,
    "counter": lambda: set(counters.NAMES),
    "metric": lambda: set(metrics.ALL),
    "claim": claims,
    "workload": workloads,
    "topology": lambda: own("topology"),
    "proxy": lambda: own("proxy"),
    "provisioner": lambda: own("provisioner"),
    "release": lambda: {offer.name for offer in catalogue.OFFERS},
    "storage": lambda: set(spec.STORAGE_PROFILES),
    "reason": lambda: {reason.name for reason in reasons.REASONS},
}


@pytest.mark.parametrize("kind", NAMES)
def test_everything_that_a_user_can_write_has_an_entry(entries, kind):
    """A new name is on the site, and no entry outlives its name."""
    assert set(entries[kind]) == NAMES[kind]()


@pytest.mark.parametrize("kind", [*NAMES, "envvar"])
def test_an_entry_has_a_meaning_and_an_example(entries, kind):
    """Its first paragraph is a sentence, and another one shows its use."""
    wrong = [
        name
        for name, text in entries[kind].items()
        if len(text.split("\n\n")[0].split()) < 3 or not re.search(r"^Example: `|^```python$", text, re.MULTILINE)
    ]

    assert wrong == []


def test_every_variable_of_the_environment_has_an_entry(entries):
    """Those of the plugin, and those of other programs that it reads."""
    assert variables() <= set(entries["envvar"])
    assert {"XDG_CACHE_HOME", "DOCKER_HOST", "TMPDIR", "GITHUB_ACTIONS", "CI"} <= set(entries["envvar"])


def test_every_exit_code_has_a_row():
    """Those of pytest, of a command that a signal ends, and of a comparison."""
    rows = re.findall(
        r"^\| (\d+) \|([^|]*)\|([^|]*)\|", (DOCS / "reference" / "exit-codes.md").read_text(), re.MULTILINE
    )
    ended = {main.INTERRUPTED, 128 + signal.SIGTERM, 128 + signal.SIGHUP}

    assert {int(code) for code, of_pytest, _ in rows if of_pytest.strip()} == {int(code) for code in pytest.ExitCode}
    assert {int(code) for code, _, of_compare in rows if of_compare.strip()} == {0, 1, 2, 3, 4, *ended}


def test_every_reason_has_a_branch():
    """The guide to inconclusive claims names each reason once."""
    named = re.findall(r"^\| \{reason\}`([a-z0-9-]+)`", (DOCS / "how-to" / "inconclusive.md").read_text(), re.MULTILINE)

    assert sorted(named) == sorted(reason.name for reason in reasons.REASONS)


@pytest.mark.thorough
def test_the_site_as_it_is_published(tmp_path):
    """Its theme has a field for words to search, on each page."""
    copied(tmp_path)
    built(BUILD, tmp_path / "docs", tmp_path / "html")

    assert 'class="sidebar-search"' in (tmp_path / "html" / "reference" / "cli.html").read_text()
    assert (tmp_path / "html" / "searchindex.js").exists()


def test_a_stored_result_is_on_the_page_of_its_work(site):
    """With its machine, and with the link of its reason."""
    page = (site / "published" / f"{FLUSH}.html").read_text()

    assert "messages.html#reason-budget-used" in page
    assert "2 x model, 8 GiB" in page


def test_a_reason_has_an_address(site):
    """Its anchor is its name, so a message can lead to it."""
    text = (site / "reference" / "messages.html").read_text()

    assert [reason.name for reason in reasons.REASONS if f'id="reason-{reason.name}"' not in text] == []


def test_every_public_name_has_an_entry(site):
    """Classes, functions and errors, each once."""
    texts = [(site / "reference" / f"{page}.html").read_text() for page in ("api", "workloads")]
    found = [name for text in texts for name in re.findall(r'id="pytest_dbcluster\.([A-Za-z]+)"', text)]

    assert sorted(found) == sorted(pytest_dbcluster.__all__)


def test_every_command_has_its_options_on_the_site(site):
    """The page is made from the parser with all commands, and shows no empty default."""
    text = (site / "reference" / "cli.html").read_text()

    assert [name for name, _, _ in main.COMMANDS if f"dbcluster {name} options" not in text] == []
    assert "--expired" in text
    assert '<span class="pre">[]</span>' not in text


def blocks(language, docs=DOCS):
    """(page, text) of every block of a language on the site, with the generated parts."""
    pages = [docs / path.relative_to(DOCS) for path in PAGES]
    generated = sorted((docs / "reference" / "generated").glob("*.md"))
    for path in [*pages, *generated]:
        pending = [path.read_text()]
        while pending:
            for _, info, body in FENCE.findall(pending.pop()):
                if info.strip() == language:
                    yield path.relative_to(docs).as_posix(), body
                elif info.startswith("{"):
                    pending.append(body)


def test_every_example_in_python_compiles(docs):
    """A reader can paste it."""
    found = list(blocks("python", docs))

    assert len(found) > 10
    for _, text in found:
        compile(text, "an example of the site", "exec")


def test_every_test_of_the_site_is_collected_by_pytest(docs, tmp_path):
    """Names that an earlier example of its page defines may be used; all others are imported or public."""
    expected, written = [], {}
    for page, text in blocks("python", docs):
        tests = [node.name for node in ast.walk(ast.parse(text)) if getattr(node, "name", "").startswith("test_")]
        if tests:
            path = tmp_path / f"test_{re.sub('[^a-z0-9]+', '_', page)}.py"
            written[path] = written.get(path, "import pytest\nfrom pytest_dbcluster import *\n") + text
            expected += [(path.name, name) for name in tests]
    for path, text in written.items():
        path.write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ["pytest", "--collect-only", "-q", "--strict-markers", *PLAIN]
    done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    collected = {tuple(re.split(r"::|\[", line)[:2]) for line in done.stdout.splitlines() if "::" in line}

    assert done.returncode == 0, done.stdout
    assert expected
    assert set(expected) <= collected


def test_the_example_draws_the_rounds_of_a_run(tmp_path):
    """The reader saves it, and gives it a results directory and the name of a picture."""
    page = (DOCS / "how-to" / "other-outputs.md").read_text()
    [example] = [text for text in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "def draw(" in text]
    (tmp_path / "draw_rounds.py").write_text(example)
    latest = results(tmp_path / "latest", [record(faster=1.3, pairs=12)])
    words = [sys.executable, "draw_rounds.py", str(latest), "rounds.png"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rounds.png").read_bytes().startswith(b"\x89PNG")


def test_a_quoted_message_is_one_that_the_code_makes():
    """The message that the page about reports explains is that of a golden file."""
    page = (DOCS / "how-to" / "read-a-report.md").read_text()
    [quoted] = re.findall(r"^```text\n(HOLDS.*?)^```", page, re.MULTILINE | re.DOTALL)

    assert quoted in (ROOT / "tests" / "golden" / "verdicts.txt").read_text()


@pytest.mark.parametrize("page", ["explanation/what-a-verdict-promises.md", "how-to/read-a-report.md"])
def test_a_quoted_sum_of_errors_is_one_that_a_run_prints(page):
    """The line about all claims of a run, or its part about claims that are not covered, is that of a golden file."""
    text = (DOCS / page).read_text()
    quoted = re.findall(r"^\d+ claims: .*$|(?<=`)not covered: [^`]+", text, re.MULTILINE)
    golden = (ROOT / "tests" / "golden" / "terminal_claims.txt").read_text()

    assert quoted
    assert [line for line in quoted if line not in golden] == []


def title(path):
    """The title of a page, also if that stands in an included file; in lower case at its beginning."""
    text = path.read_text()
    if included := re.match(r"```\{include\} (\S+)", text):
        return title((path.parent / included[1]).resolve())
    return decapitalised(re.search(r"^# (.+)$", text, re.MULTILINE)[1])


def decapitalised(text):
    """The text with a small first letter, which a title has within a sentence."""
    return text[:1].lower() + text[1:]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_link_to_a_page_has_its_title(path):
    """A reader finds the words of a link at the top of its page; an empty text, and a table of contents, take them."""
    text = FENCE.sub(lambda one: one[0] if "toctree" in one[2] else "\n", path.read_text())
    links = re.findall(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)#\s]+\.md)\)", text)
    trees = [entries for _, kind, entries in FENCE.findall(text) if "toctree" in kind]

    assert [(words, page) for words, page in links if decapitalised(words) != title(path.parent / page)] == []
    assert [line for entries in trees for line in entries.splitlines() if "<" in line] == []


def commands():
    """Every line of the shell on the site, joined where it continues."""
    lines = [line for _, text in blocks("sh") for line in text.replace("\\\n", " ").splitlines()]
    return [line.split(" #")[0].strip().removeprefix("$ ") for line in lines if line.strip()]


def test_commands_of_the_site_exist():
    """Each `dbcluster COMMAND` is a command, with options that it accepts."""
    parser = main.parser([])
    action = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    calls = [found for line in commands() for found in re.findall(r"\bdbcluster ([a-z0-9]+)((?: [^|;&>]+)?)", line)]
    wrong = []
    for command, rest in calls:
        given = set(re.findall(r"(?<!\S)(--[a-z0-9-]+)", rest))
        known = next(one for one in main.parser([command])._actions if isinstance(one, argparse._SubParsersAction))
        wrong += [command] if command not in action.choices else []
        wrong += [f"{command} {option}" for option in given - accepted(known.choices.get(command))]

    assert calls
    assert wrong == []


def accepted(parser):
    """The options of a parser and of its own commands."""
    found = set()
    for one in parser._actions if parser else ():
        found |= set(one.option_strings)
        if isinstance(one, argparse._SubParsersAction):
            found |= {option for choice in one.choices.values() for option in accepted(choice)}
    return found


def test_the_site_names_no_option_that_does_not_exist():
    """Everywhere, also in running text."""
    texts = {path: path.read_text() for path in PAGES}
    named = {
        (path.name, name)
        for path, text in texts.items()
        for name in re.findall(r"--db-[a-z0-9]+(?:-[a-z0-9]+)*(?![a-z0-9-])", text)
    }

    assert [(page, name) for page, name in named if name not in options()] == []


def sentences(text):
    """The sentences of the prose of a page: no code, tables, targets of links or headings."""
    prose = FENCE.sub("\n", text)
    lines = [line for line in prose.splitlines() if not re.match(r"\s*(\||#|\()", line)]
    lines = ["\n" + line.strip()[2:] if re.match(r"\s*(- |\d+\. )", line) else line for line in lines]
    prose = re.sub(r"`[^`]*`", "code", "\n".join(lines))
    prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    for paragraph in re.split(r"\n\s*\n|\n(?=\n)", prose):
        yield from re.split(r"(?<=[.:?!])\s+", " ".join(paragraph.split()))


@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.name not in INCLUDING], ids=lambda path: path.relative_to(DOCS).as_posix()
)
def test_sentences_are_short(path):
    """A reader in a hurry understands each one at once."""
    assert [one for one in sentences(path.read_text()) if len(one.split()) > WORDS] == []

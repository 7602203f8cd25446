"""What a visitor of the repository finds: security, conduct, issue forms, citation, changelog. They say what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_dbcluster
from pytest_dbcluster.cli import main
from pytest_dbcluster.plugin import command_line
from tests.support.command import ROOT
from tests.support.workflows import read

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
PAPERS = ("SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
SECURITY, CHANGELOG = ((ROOT / name).read_text() for name in ("SECURITY.md", "CHANGELOG.md"))
CHECK = Path(sys.executable).parent / "check-jsonschema"


def valid(schema, *files):
    """Fail unless the files have the shape that this schema of check-jsonschema asks for."""
    command = [CHECK, "--builtin-schema", f"vendor.{schema}", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def fields(form):
    """The fields of an issue form, id -> field."""
    return {field["id"]: field for field in read(form)["body"] if "id" in field}


def test_issue_forms_have_the_shape_that_github_reads():
    """As its JSON Schemas say."""
    assert [form.stem for form in FORMS] == ["bug", "question", "wrong_verdict"]
    valid("github-issue-forms", *FORMS)
    valid("github-issue-config", ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_every_issue_form_asks_for_what_an_answer_needs(form):
    """The version, the findings of the doctor, and run.json."""
    asked = fields(form)

    assert "`dbcluster --version`" in asked["version"]["attributes"]["description"]
    assert "`dbcluster doctor`" in asked["doctor"]["attributes"]["description"]
    assert "run.json" in asked["run"]["attributes"]["label"]


@pytest.mark.parametrize("form", [form for form in FORMS if form.stem != "question"], ids=lambda form: form.stem)
def test_a_report_of_an_error_cannot_lack_version_and_doctor(form):
    """A question can."""
    asked = fields(form)

    assert asked["version"]["validations"]["required"]
    assert asked["doctor"]["validations"]["required"]


def test_the_citation_is_valid_and_of_this_version():
    """By the schema of the Citation File Format; title and licence are those of the package."""
    citation = read(ROOT / "CITATION.cff")

    valid("citation-file-format", ROOT / "CITATION.cff")
    assert citation["version"] == pytest_dbcluster.__version__
    assert (citation["title"], citation["license"]) == ("pytest-dbcluster", "Apache-2.0")


def test_the_changelog_of_a_first_version_is_short():
    """A paragraph, eight bullets with a link each, and what a user has to know before trusting it."""
    bullets = re.findall(r"^- (.*(?:\n  .*)*)", CHANGELOG, re.MULTILINE)

    assert len(CHANGELOG.splitlines()) <= 40
    assert len(bullets) == 8
    assert [one for one in bullets if "](" not in one] == []
    assert re.findall(r"^\*\*([A-Z][a-z ]+)\*\*:", CHANGELOG, re.MULTILINE) == [
        "Experimental",
        "Known limits",
        "Compatibility",
    ]


@pytest.mark.parametrize("name", PAPERS)
def test_links_of_a_paper_lead_to_files(name):
    """No link points at nothing."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", re.sub(r"\s+", " ", (ROOT / name).read_text()))

    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", PAPERS)
def test_papers_are_written_for_readers_in_a_hurry(name):
    """Lines of at most 100 characters, and sentences of at most 20 words."""
    text = (ROOT / name).read_text()
    parts = re.split(r"\n\n|\n(?=- |\|)", re.sub(r"`[^`]*`", "code", text))
    sentences = [one for part in parts for one in re.split(r"(?<=[.:;])\s", " ".join(part.split()))]

    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert [one for one in sentences if len(one.split()) > 20] == []


def test_security_names_options_variables_and_commands_that_exist():
    """A reader can type all of them."""
    options = set()
    command_line.add_options(lambda _: lambda name, **_: options.add(name))
    commands = {command[0] for command in main.COMMANDS}
    variables = set(re.findall(r"\bDBCLUSTER_[A-Z_]+", SECURITY))
    code = "".join(path.read_text() for path in (ROOT / "pytest_dbcluster").rglob("*.py"))

    assert set(re.findall(r"--db-[a-z0-9-]+", SECURITY)) <= options
    assert set(re.findall(r"`dbcluster ([a-z0-9]+)", SECURITY)) <= commands
    assert variables
    assert [name for name in variables if name not in code] == []


def test_security_names_the_permissions_that_files_have():
    """As the code makes them: the directory of a run is the user's, and files with passwords too."""
    run = (ROOT / "pytest_dbcluster" / "hosts" / "local_run.py").read_text()
    template = (ROOT / "pytest_dbcluster" / "clusters" / "servers" / "data_template.py").read_text()

    assert "mode 0700" in SECURITY
    assert "self.directory.mkdir(parents=True, mode=0o700)" in run
    assert "mode 0600" in SECURITY
    assert "manifest, mode=0o600" in template


def test_no_workflow_has_a_stored_secret():
    """As SECURITY.md says: a job has its own token, and gets others by OIDC."""
    texts = {path.name: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}

    assert "None has a stored secret" in SECURITY
    assert [name for name, text in texts.items() if "secrets." in text] == []

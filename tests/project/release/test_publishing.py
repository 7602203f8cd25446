"""How a release and its documents are published: checked tags, one build, a review, and one site."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

import pytest_dbcluster
from tests.support import stand_in_gh
from tests.support.command import ROOT, program
from tests.support.facts import missing
from tests.support.workflows import FOLDER, read

VERSION = pytest_dbcluster.__version__
RELEASE, DOCS, CI = (read(FOLDER / name) for name in ("release.yml", "docs.yml", "ci.yml"))


def uses(job):
    """The actions of a job, without their commits."""
    return [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]


@pytest.fixture
def tagged(tmp_path):
    """``tagged("v1", heading=..., cited=...)``: checks a tag in a checkout with these texts."""
    for name in ("scripts/check_release.sh", "pytest_dbcluster/version.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def check(tag, heading=f"## {VERSION} (2030-01-31)", cited=VERSION):
        (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\nText.\n\n## 0.0.1 (2029-01-31)\n")
        (tmp_path / "CITATION.cff").write_text(f"cff-version: 1.2.0\nversion: {cited}\n")
        command = [tmp_path / "scripts" / "check_release.sh", tag]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return check


def test_a_tag_of_the_version_is_released(tagged):
    """The changelog has its date, and the citation its version."""
    done = tagged(f"v{VERSION}")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_problem_of_a_tag_is_named_at_once(tagged):
    """Each with what to write."""
    heading = f"## {VERSION} (unreleased)"
    done = tagged("v99.0.0", heading=heading, cited="0.0.1")

    assert done.returncode == 1
    tag, changes, cited = done.stderr.splitlines()
    assert missing(tag, "release: ", "v99.0.0", f"pytest_dbcluster/version.py has {VERSION}: ", f"tag v{VERSION}") == []
    assert missing(changes, "release: ", "CHANGELOG.md", f"'{heading}': write '## {VERSION} (YEAR-MONTH-DAY)'") == []
    assert missing(cited, "release: ", "CITATION.cff", f"0.0.1: write {VERSION}") == []


def test_a_release_is_built_once():
    """Tests and publication take the artifact of the build; neither builds again."""
    builders = [name for name, job in RELEASE["jobs"].items() if "hatchling build" in json.dumps(job)]

    assert builders == ["build"]
    assert RELEASE["jobs"]["test"]["needs"] == "build"
    assert RELEASE["jobs"]["publish"]["needs"] == "test"
    for name in ("test", "publish"):
        assert "actions/download-artifact" in uses(RELEASE["jobs"][name])


def test_a_release_is_reviewed_and_needs_no_password():
    """The job that publishes has an environment and short-lived tokens. It runs no code of the repository."""
    publish = RELEASE["jobs"]["publish"]

    assert publish["environment"]["name"] == "pypi"
    assert publish["permissions"] == {"attestations": "write", "id-token": "write"}
    assert [step for step in publish["steps"] if "run" in step] == []
    assert uses(publish) == [
        "actions/download-artifact",
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]
    assert not [name for name, job in RELEASE["jobs"].items() if "id-token" in job["permissions"] and name != "publish"]


def test_the_wheel_is_tested_without_the_package_of_the_checkout():
    """It is removed before anything is installed or run."""
    commands = [step["run"] for step in RELEASE["jobs"]["test"]["steps"] if "run" in step]

    assert commands[0] == "rm -r pytest_dbcluster"
    assert any(re.search(r"pip install dist/\*\.whl$", command) for command in commands)


def test_each_python_that_the_package_names_is_tested():
    """By CI, whose main job has Debian's 3.11, and by a release."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [found[1] for one in classifiers if (found := re.fullmatch(r"Programming .* :: (3\.\d+)", one))]

    assert named == ["3.11", "3.12", "3.13", "3.14"]
    assert RELEASE["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert ["3.11", *CI["jobs"]["pythons"]["strategy"]["matrix"]["python"]] == named
    assert CI["jobs"]["test"]["container"]["image"] == "debian:12"


def test_one_workflow_publishes_the_site():
    """GitHub Pages has one site, so a second workflow would replace it; the suites only start this one."""
    publishers = [path.name for path in FOLDER.glob("*.yml") if "actions/deploy-pages@" in path.read_text()]

    assert publishers == ["docs.yml"]
    assert "make docs" in [step.get("run") for step in DOCS["jobs"]["build"]["steps"]]
    assert [step.get("run") for step in read(FOLDER / "suites.yml")["jobs"]["pages"]["steps"]] == [
        "gh workflow run docs.yml"
    ]


def artifact(run, branch="main", head=1, *, expired=False):
    """An artifact as GitHub lists it; ``head``: the repository that its commit is from."""
    origin = {"id": run, "head_branch": branch, "head_repository_id": head, "repository_id": 1}
    return {"name": "suites-page", "expired": expired, "workflow_run": origin}


@pytest.fixture
def site(tmp_path):
    """``site(artifacts)``: fetches the page of the suites into a site; run 5 and 7 have one."""
    pages = {}
    for run in ("5", "7", "8"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "index.html").write_text(f"run {run}")
        pages[run] = str(tmp_path / run)
    state = tmp_path / "state.json"
    program(tmp_path / "bin" / "gh", f'#!/bin/sh\nexec {sys.executable} {stand_in_gh.__file__} {state} "$@"\n')

    def fetch(artifacts):
        state.write_text(json.dumps({"rights": False, "every_artifact": artifacts, "downloads": pages}))
        given = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "GH_REPO": "owner/project"}
        command = [ROOT / "scripts" / "suites_page.sh", tmp_path / "site" / "suites"]
        done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        page = tmp_path / "site" / "suites" / "index.html"
        return page.read_text() if page.exists() else done.stdout

    return fetch


needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="no jq on PATH, which gh --jq has built in")


@needs_jq
def test_the_site_has_the_page_of_the_newest_night(site):
    """GitHub may list artifacts in any order; an expired one cannot be downloaded."""
    assert site([artifact(5), artifact(7), artifact(8, expired=True)]) == "run 7"


@needs_jq
def test_a_page_of_a_fork_or_another_branch_is_not_published(site):
    """Anybody can open a pull request whose run has an artifact of this name, also from a branch called main."""
    assert site([artifact(5), artifact(7, head=2), artifact(8, branch="other")]) == "run 5"


@needs_jq
def test_a_site_without_a_night_has_no_such_page(site):
    """It is published all the same."""
    (line,) = site([]).splitlines()
    assert missing(line, "no run of the suites", "page") == []

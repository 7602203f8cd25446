"""The comment of a comparison, also for a pull request of a fork, whose own job may not comment."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from tests.support import stand_in_gh
from tests.support.facts import missing
from tests.support.workflows import GitHub

RUN, COMMIT, NUMBER = "900", "c0ffee" * 6 + "beef", "7"
MARK = "<!-- comparison of a my.cnf with its base -->"
RESULT = "head is worse than base: mysqlslap write c1\n"

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="no jq on PATH, which gh --jq has built in")


class Comments:
    """What GitHub knows when the run of a comparison has ended, and the workflow that comments on it."""

    def __init__(self, directory):
        self.directory = directory
        self.artifact = directory / "artifact"
        self.artifact.mkdir()
        self.put(result=RESULT, number=f"{NUMBER}\n")
        sizes = {"verdicts": 90_000_000, "comparison": 600}
        self.state = {
            "artifacts": {RUN: [{"name": name, "size_in_bytes": size} for name, size in sizes.items()]},
            "downloads": {RUN: str(self.artifact)},
            "pulls": {NUMBER: {"number": 7, "head": {"sha": COMMIT}}, "8": {"number": 8, "head": {"sha": "another"}}},
            "comments": {NUMBER: [{"id": 11, "user": {"login": "somebody"}, "body": f"{MARK}\nnot ours"}]},
            "rights": True,
        }  # fmt: skip

    def put(self, result=None, number=None):
        """Write the files of the artifact."""
        for name, text in (("comparison.md", result), ("pull_request.txt", number)):
            if text is not None:
                (self.artifact / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    def run(self):
        """Run the workflow's job."""
        place = self.directory / f"run{len(list(self.directory.iterdir()))}"
        (place / "bin").mkdir(parents=True)
        (place / "workspace").mkdir()
        known = place / "state.json"
        known.write_text(json.dumps(self.state))
        program = place / "bin" / "gh"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {stand_in_gh.__file__} {known} "$@"\n')
        program.chmod(0o755)
        event = {"workflow_run": {"id": int(RUN), "head_sha": COMMIT, "event": "pull_request"}}
        github = GitHub(place, place / "bin", {}, {"event_name": "workflow_run", "event": event})
        done = github.run("comment-example.yml", "comment", place / "workspace")
        self.state = json.loads(known.read_text())
        return done

    @property
    def written(self):
        """The comments of the workflow, by pull request."""
        every = self.state["comments"].items()
        own = {
            number: [one["body"] for one in some if one["user"]["login"] == stand_in_gh.BOT] for number, some in every
        }
        return {number: bodies for number, bodies in own.items() if bodies}


@pytest.fixture
def comments(tmp_path):
    """A comparison of pull request 7, which has a comment of a person that looks like one of ours."""
    return Comments(tmp_path)


def test_the_result_is_a_comment_in_a_code_block(comments):
    """On the pull request of the run."""
    done = comments.run()

    assert done.red == [], done.text
    assert comments.written == {NUMBER: [f"{MARK}\n~~~~text\n{RESULT}\n~~~~\n"]}


def test_a_second_result_takes_the_place_of_the_first_one(comments):
    """Comments of others stay as they are, also those of other workflows."""
    comments.state["comments"]["7"].append({"id": 12, "user": {"login": stand_in_gh.BOT}, "body": "coverage: 81 %"})
    comments.run()
    comments.put(result="no worse\n")
    done = comments.run()

    assert done.red == [], done.text
    assert comments.written == {NUMBER: ["coverage: 81 %", f"{MARK}\n~~~~text\nno worse\n\n~~~~\n"]}
    assert comments.state["comments"]["7"][0]["body"] == f"{MARK}\nnot ours"


def test_text_of_a_pull_request_does_nothing(comments):
    """It cannot leave its code block, and is cut before the size limit of a comment."""
    comments.put(result="~~~~\n@everybody fixes #1 $(id) `id`\n" + "x" * 80_000)
    comments.run()
    ((body,),) = comments.written.values()

    assert body.startswith(f"{MARK}\n~~~~text\n\n@everybody fixes #1 $(id) `id`\nxxx")
    assert body.count("~~~~") == 2
    assert len(body) < 65_536


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (b"8\n", f"the last commit of pull request 8 is another, and not {COMMIT}"),
        (b"9\n", "there is no pull request 9"),
        (b"", f"the artifact of run {RUN} has no result or no number"),
        (b"7;id\n", f"the artifact of run {RUN} has no number of a pull request"),
        (b"7/../8\n", f"the artifact of run {RUN} has no number of a pull request"),
        (b"7\n8\n", f"the artifact of run {RUN} has no number of a pull request"),
        (b"\0\xff" * 500_000, f"the artifact of run {RUN} has no number of a pull request"),
    ],
    ids=["another pull request", "none", "empty", "a command", "a path", "two", "bytes"],
)
def test_a_number_that_is_not_that_of_the_run_is_not_believed(comments, number, said):
    """Whoever opens a pull request writes its artifact: the number counts only where its last commit is the run's."""
    comments.put(number=number)
    done = comments.run()

    assert done.red == [], done.text
    assert done.steps["Comment"].stdout.splitlines()[-1] == f"no comment: {said}"
    assert comments.written == {}


def test_a_large_artifact_is_not_fetched(comments):
    """Its size is asked for first; of a run that was repeated the largest counts."""
    comments.state["artifacts"][RUN].append({"name": "comparison", "size_in_bytes": 2_000_000_000})
    done = comments.run()

    assert done.red == [], done.text
    said = f"no comment: the artifact of run {RUN} has 2000000000 bytes, which is not a result of a comparison\n"
    assert done.steps["Comment"].stdout == said
    assert [words for words in comments.state["calls"] if "download" in words] == []


def test_a_link_in_an_artifact_is_not_followed(comments):
    """It could lead to the token of the job."""
    (comments.directory / "secret").write_text("secret\n")
    (comments.artifact / "comparison.md").unlink()
    (comments.artifact / "comparison.md").symlink_to(comments.directory / "secret")
    done = comments.run()

    said = f"no comment: the artifact of run {RUN} has links, which could lead to any file\n"
    assert done.steps["Comment"].stdout == said
    assert comments.written == {}


def test_a_comparison_without_a_result_has_no_comment(comments):
    """It was cancelled, or the set-up failed."""
    comments.state["artifacts"][RUN].pop()
    done = comments.run()

    assert done.red == [], done.text
    (line,) = done.steps["Comment"].stdout.splitlines()
    assert missing(line, "no comment", f"run {RUN} has no artifact") == []


def test_a_repository_that_gives_no_right_to_comment_is_told_so(comments):
    """A warning that says where the result is: a missing comment is no reason for a red job."""
    comments.state["rights"] = False
    done = comments.run()

    assert done.red == [], done.text
    assert "Resource not accessible by integration (HTTP 403)" in done.text
    (line,) = done.steps["Comment"].stdout.splitlines()
    assert line.startswith(f"::warning::pull request {NUMBER} has no comment")
    assert missing(line, "token may not write", f"the summary of run {RUN}") == []
    assert comments.written == {}

"""Jobs of the workflows: their steps run here as they are written, with the variables and files that GitHub gives."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.support.command import ROOT

FOLDER = ROOT / ".github" / "workflows"
BASH = ["bash", "-e"]
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"], "sh": ["sh", "-e"]}
RUNNER = 1001  # the user of GitHub's runner: a job in a container is root there, and the checkout belongs to this one
# What a step here must not see of the run that started it.
OUTER = ("GITHUB_", "RUNNER_", "MAKE", "MFLAGS", "PYTEST_", "GIT_", "CI")
EVERY = {"event_name": "push", "repository": "owner/project", "token": "a-token", "event": {}}


def read(path: Path) -> dict[str, Any]:
    """A workflow as plain data."""
    return YAML(typ="safe").load(path)


@dataclasses.dataclass
class Done:
    """A job that has run. steps: name or command -> what it did. artifacts: a directory for each. summary: its file."""

    artifacts: Path
    summary: Path
    steps: dict[str, subprocess.CompletedProcess[str]] = dataclasses.field(default_factory=dict)

    @property
    def red(self) -> list[str]:
        """The steps that failed; empty for a green job."""
        return [name for name, done in self.steps.items() if done.returncode]

    @property
    def text(self) -> str:
        """What all steps printed."""
        return "".join(f"$ {name}\n{done.stdout}{done.stderr}" for name, done in self.steps.items())


@dataclasses.dataclass(frozen=True)
class GitHub:
    """An event, and what GitHub gives to its jobs.

    directory: for the files of GitHub itself; jobs of one directory share their artifacts. programs: a directory that
    comes first on PATH. variables: set last, such as those of a cache that is there already. github: the context
    ``github``, such as ``event_name``, ``repository`` and ``event``.
    """

    directory: Path
    programs: Path
    variables: Mapping[str, str]
    github: Mapping[str, Any]

    def run(self, workflow: str, job: str, workspace: Path) -> Done:
        """Run a job in a checkout. Of the actions, artifacts are kept and given; others do nothing.

        workflow: a file of this project, or the whole path of another one.
        """
        path = FOLDER / workflow
        text = read(path)
        return _Job(self, text, text["jobs"][job], workspace, self.directory / f"{path.stem} {job}").run()


class _Job:
    """One job. contexts: what its expressions name."""

    def __init__(self, github: GitHub, workflow: Mapping[str, Any], job: Mapping[str, Any], workspace: Path, own: Path):
        self._github = github
        self._job = job
        self._workspace = workspace
        self._contexts: dict[str, Any] = {"github": {**EVERY, **github.github}, "env": {}}
        for name in ("home", "temp"):
            (own / name).mkdir(parents=True)
        self._files = {name: own / name for name in ("OUTPUT", "STEP_SUMMARY", "ENV")}
        self._given = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": self._contexts["github"]["event_name"],
            "GITHUB_EVENT_PATH": str(own / "event.json"),
            "GITHUB_REPOSITORY": self._contexts["github"]["repository"],
            "GITHUB_WORKSPACE": str(workspace),
            "HOME": str(own / "home"),
            "RUNNER_TEMP": str(own / "temp"),
            **{f"GITHUB_{name}": str(path) for name, path in self._files.items()},
        }
        (own / "event.json").write_text(json.dumps(self._contexts["github"]["event"]))
        for path in self._files.values():
            path.touch()
        for level in (workflow, job):
            self._contexts["env"] |= self._evaluated(level.get("env", {}))

    def run(self) -> Done:
        """Run the steps that GitHub would run."""
        done = Done(self._github.directory / "artifacts", self._files["STEP_SUMMARY"])
        assert self._holds(self._job.get("if", ""), red=False), "GitHub would skip this job"
        owner = self._workspace.stat().st_uid
        if "container" in self._job and os.geteuid() == 0:
            os.chown(self._workspace, RUNNER, -1)
        self._steps(done)
        os.chown(self._workspace, owner, -1)
        return done

    def _steps(self, done: Done) -> None:
        for step in self._job["steps"]:
            if not self._holds(step.get("if", ""), red=bool(done.red)):
                continue
            if "run" in step:
                done.steps[step.get("name", step["run"])] = self._step(step)
            else:
                self._act(step["uses"].partition("@")[0], step.get("with", {}), done.artifacts)

    def _step(self, step: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        shell = SHELLS[step["shell"]] if "shell" in step else SHELLS["sh"] if "container" in self._job else BASH
        outside = {name: value for name, value in os.environ.items() if not name.startswith(OUTER)}
        path = {"PATH": f"{self._github.programs}:{os.environ['PATH']}"}
        own = self._evaluated(step.get("env", {}))
        variables = {**outside, **path, **self._given, **self._contexts["env"], **own, **self._github.variables}
        script = Path(self._given["RUNNER_TEMP"]) / "step.sh"
        script.write_text(self._text(step["run"]))
        command = [*shell, str(script)]
        return subprocess.run(command, cwd=self._workspace, env=variables, capture_output=True, text=True, check=False)

    def _act(self, action: str, given: Mapping[str, Any], artifacts: Path) -> None:
        if action == "actions/upload-artifact":
            _keep(self._workspace, given["path"].split(), artifacts / given["name"])
        elif action == "actions/download-artifact":
            shutil.copytree(artifacts / given["name"], self._workspace / given["path"], dirs_exist_ok=True)

    def _evaluated(self, variables: Mapping[str, Any]) -> dict[str, str]:
        return {name: self._text(str(value)) for name, value in variables.items()}

    def _text(self, text: str) -> str:
        """The text with its expressions as GitHub fills them in."""
        return re.sub(r"\$\{\{ *(.+?) *\}\}", lambda found: self._value(found[1]), text)

    def _value(self, expression: str) -> str:
        """Of a name such as ``github.event.number``, a text in quotes, or ``hashFiles('path')``; empty for nothing."""
        if quoted := re.fullmatch(r"'(.*)'", expression):
            return quoted[1]
        if files := re.fullmatch(r"hashFiles\('([^']+)'\)", expression):
            return "a hash" if list(self._workspace.glob(files[1])) else ""
        value: Any = self._contexts
        for name in expression.split("."):
            value = value.get(name, "") if isinstance(value, Mapping) else ""
        return str(value)

    def _holds(self, condition: str, *, red: bool) -> bool:
        """Whether a step or job with this condition runs. red: whether a step before it has failed."""
        parts = [part.strip() for part in condition.split("&&") if part.strip()]
        if "always()" not in parts and red:
            return False
        return all(self._compared(part) for part in parts if part != "always()")

    def _compared(self, part: str) -> bool:
        left, sign, right = re.fullmatch(r"(.+?) *(==|!=) *(.+)", part).groups()
        return (self._value(left) == self._value(right)) is (sign == "==")


def _keep(workspace: Path, patterns: list[str], to: Path) -> None:
    """Keep an artifact: of one directory what is in it, else files by their names."""
    to.mkdir(parents=True, exist_ok=True)
    for path in (found for pattern in patterns for found in workspace.glob(pattern)):
        if path.is_dir():
            shutil.copytree(path, to, dirs_exist_ok=True)
        else:
            shutil.copy(path, to)

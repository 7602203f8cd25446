"""A stand-in for GitHub's command ``gh``: the calls of our workflows, on a state that a test has written.

    python stand_in_gh.py STATE.json WORDS...

The state has what GitHub would know:

- ``artifacts``: run -> its list; ``every_artifact``: the list of all runs
- ``downloads``: run -> directory of its artifact
- ``pulls``: number -> pull request; ``comments``: number -> list
- ``rights``: whether the token may write

Each call is added to ``calls``. A filter of ``--jq`` is given to jq.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

BOT = "github-actions[bot]"


class Refused(Exception):
    """What ``gh`` prints before it ends with 1."""


def main() -> None:
    """Answer one call."""
    path = Path(sys.argv[1])
    state = json.loads(path.read_text())
    state.setdefault("calls", []).append(sys.argv[2:])
    try:
        said = called(state, sys.argv[2:])
    except Refused as error:
        sys.exit(f"gh: {error}")
    finally:
        path.write_text(json.dumps(state))
    sys.stdout.write(said)


def called(state: dict[str, Any], words: list[str]) -> str:
    """What a call prints."""
    if words[:2] == ["auth", "setup-git"]:
        return ""
    if words[:2] == ["run", "download"]:
        return downloaded(state, words[2:])
    if words[:1] == ["api"]:
        return asked(state, words[1:])
    raise Refused(f"this stand-in knows no gh {' '.join(words)}")


def downloaded(state: dict[str, Any], words: list[str]) -> str:
    """``gh run download RUN --name NAME --dir DIRECTORY``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--name", required=True)
    parser.add_argument("--dir", required=True)
    given = parser.parse_args(words)
    if given.run not in state["downloads"]:
        raise Refused(f"no artifact matches any of the names or patterns provided ({given.name})")
    shutil.copytree(state["downloads"][given.run], given.dir, symlinks=True)
    return ""


def asked(state: dict[str, Any], words: list[str]) -> str:
    """``gh api``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("--method", default="GET")
    parser.add_argument("--paginate", action="store_true")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--jq", default=".")
    parser.add_argument("-F", dest="field", default="")
    given = parser.parse_args(words)
    owner, name, *place = given.endpoint.removeprefix("repos/").split("/")
    assert (owner, name) == ("owner", "project")
    if given.method != "GET":
        if not state["rights"]:
            raise Refused("Resource not accessible by integration (HTTP 403)")
        return written(state, given.method, place, Path(given.field.removeprefix("body=@")).read_text())
    command, text = ["jq", "--raw-output", given.jq], json.dumps(known(state, place))
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return "" if given.silent else done.stdout


def known(state: dict[str, Any], place: list[str]) -> Any:
    """What a GET of this place returns."""
    match place:
        case ["actions", query] if query.startswith("artifacts?name="):
            return {"artifacts": state["every_artifact"]}
        case ["actions", "runs", run, "artifacts"]:
            return {"artifacts": state["artifacts"].get(run, [])}
        case ["pulls", number] if number in state["pulls"]:
            return state["pulls"][number]
        case ["issues", number, "comments"]:
            return state["comments"].get(number, [])
    raise Refused("Not Found (HTTP 404)")


def written(state: dict[str, Any], method: str, place: list[str], body: str) -> str:
    """Write a comment."""
    match method, place:
        case "POST", ["issues", number, "comments"]:
            every = [one["id"] for comments in state["comments"].values() for one in comments]
            made = {"id": max(every, default=100) + 1, "user": {"login": BOT}, "body": body}
            state["comments"].setdefault(number, []).append(made)
        case "PATCH", ["issues", "comments", identity]:
            every = [one for comments in state["comments"].values() for one in comments]
            (found,) = [one for one in every if str(one["id"]) == identity]
            found["body"] = body
        case _:
            raise Refused("Not Found (HTTP 404)")
    return ""


if __name__ == "__main__":
    main()

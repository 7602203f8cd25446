"""Files of results with their fields, and the permissions of Amazon EC2, from the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entries import code, codes, markdown, page, table

from pytest_dbcluster.hosts.provisioners.ec2 import policy
from pytest_dbcluster.reporting import results_directory, schema
from pytest_dbcluster.reporting.documents import run_document

SCHEMAS = Path(schema.__file__).parent / "schemas"
# File of the results directory -> its contents.
FILES: Mapping[str, str] = {
    "run.json": "The run: command, commit, version of the plugin, machine, releases, and how each test ended.",
    "claims.jsonl": "One JSON object a line for each claim, with every round.",
    "curves.jsonl": "One JSON object a line for each sweep, with every round of its points.",
    "summary.md": "The closing table as Markdown.",
    "matrix.csv": "Claims by release, of a run on several releases.",
    "index.html": "The page of the run; it needs the extra `plots`.",
    "index.md": "Claims side by side, which `dbcluster report` writes.",
    "allure.html": "Allure's page, which `dbcluster report --allure` makes.",
    "history.jsonl": "The part of the run's history that is about its claims.",
    "github-benchmark.json": "The claims as input of github-action-benchmark, in GitHub Actions or with `--db-github`.",
    "rounds/*.csv": "The rounds of a claim in the order in which they ran, with counters and samples of the machine.",
    "rounds/*.commits.csv": "Of a claim about an event: the commits in each tenth of a second of each repetition.",
    "rounds/*.jsonl": "The ledger of each round, for workloads that keep one.",
    "charts/*.svg": "The rounds of a claim over time, and its ratio with the interval at each look; "
    "or the commits around an event, and the value of each repetition.",
    "curves/*.csv": "The points of a sweep: rounds, medians with 95 % intervals, latencies.",
    "curves/*.jsonl": "The ledgers of the rounds of a sweep.",
    "curves/*.svg": "The chart of a sweep.",
    "timeline/*.csv": "Every second of a claim: CPU, disk and network of each host.",
    "logs/*/*/*/*.log": "Error logs of the nodes of a cluster that failed, by test, cluster and node.",
    "logs/*/*/*/my.cnf": "The my.cnf of each of these nodes.",
}


def files() -> str:
    """The files of a results directory."""
    known = (run_document.FILE, *results_directory.OURS)
    return table(("file", "contents"), [(code(name), FILES[name]) for name in known])


def run_fields() -> str:
    """The fields of ``run.json``."""
    return _fields("run")


def claim_fields() -> str:
    """The fields of a line of ``claims.jsonl``."""
    return _fields("claims")


def _fields(name: str) -> str:
    document = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    parts = []
    for title, definition in document["$defs"].items():
        if properties := definition.get("properties"):
            rows = [
                (code(field), _type(value), markdown(value.get("description"))) for field, value in properties.items()
            ]
            parts += [
                f"### {title}\n",
                f"{markdown(definition.get('description'))}\n",
                table(("field", "type", "meaning"), rows),
            ]
    return page(parts)


def _type(value: Mapping[str, Any]) -> str:
    """The type of a field in a word."""
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "const" in value:
        return code(json.dumps(value["const"]))
    if "enum" in value:
        return "text" if "nan" not in value["enum"] else "number"
    if "anyOf" in value:
        kinds = dict.fromkeys(_type(one) for one in value["anyOf"])
        return " or ".join(kinds)
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "array": "list",
        "object": "object",
        "null": "null",
    }
    return names.get(str(value.get("type")), "any")


def permissions() -> str:
    """The actions of both policies, with what each statement permits."""
    rows = []
    reaper = {action for one in policy.document(reaper=True)["Statement"] for action in _actions(one)}
    for statement in policy.document()["Statement"]:
        actions = _actions(statement)
        rows.append(
            (code(statement["Sid"]), codes(actions), codes(action for action in actions if action in reaper) or "none")
        )
    return table(("statement", "actions of a run", "of these also a reaper's"), rows)


def _actions(statement: Mapping[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else list(action)

"""Options of pytest and of ``dbcluster``, from their parsers."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import re
from typing import Any

import examples
from entries import code, entry, example, page, prose

from pytest_dbcluster.cli import main
from pytest_dbcluster.plugin import command_line

# The headings of the page, and what the names of their options begin with; the first that fits counts.
GROUPS = (
    ("Amazon EC2", ("--db-ec2", "--db-max-cost")),
    ("Machines over ssh", ("--db-host", "--db-load-host", "--db-ssh")),
    (
        "How long and how sure",
        ("--db-max-pairs", "--db-budget", "--db-run-budget", "--db-wait", "--db-alpha", "--db-seed", "--db-strict"),
    ),
    ("Results and history", ("--db-keep", "--db-results", "--db-resume", "--db-history", "--db-github")),
    ("What is measured, and where", ("--db-",)),
)
ORDER = (
    "What is measured, and where",
    "How long and how sure",
    "Results and history",
    "Machines over ssh",
    "Amazon EC2",
)


@dataclasses.dataclass(frozen=True)
class PytestOption:
    """An option of pytest as the plugin declares it."""

    name: str
    metavar: str
    help: str
    default: object
    group: str


class _Group:
    """Takes down options in place of a group of pytest."""

    def __init__(self) -> None:
        self.options: list[PytestOption] = []

    def addoption(self, name: str, **given: Any) -> None:
        """Take one down."""
        group = next(title for title, starts in GROUPS if name.startswith(starts))
        self.options.append(
            PytestOption(name, given.get("metavar", ""), given.get("help", ""), given.get("default"), group)
        )


def pytest_options() -> list[PytestOption]:
    """Every option ``--db-...``."""
    group = _Group()
    command_line.add_options(group)
    return group.options


def options() -> str:
    """The options of pytest in groups, each with its help, its default and an example."""
    known = pytest_options()
    parts = ["```{program} pytest\n```\n"]
    for title in ORDER:
        parts.append(f"## {title}\n")
        parts += [_option(option) for option in known if option.group == title]
    return page(parts)


def _option(option: PytestOption) -> str:
    named = re.match(r"[a-z.]+[:.]", option.help)  # it begins with a value or the name of a file
    text = option.help if named else option.help[0].upper() + option.help[1:]
    default = f"Default: {code(f'{option.default:g}' if isinstance(option.default, float) else str(option.default))}."
    given = option.default is not None and "default" not in option.help
    shown = f"{option.name} {examples.OPTIONS[option.name]}".strip()
    return entry(
        "option",
        f"{option.name} {option.metavar}".strip(),
        prose(_sentence(text)),
        default if given else "",
        example(f"pytest {shown}"),
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def dbcluster() -> argparse.ArgumentParser:
    """The parser of ``dbcluster`` with the options of all its commands, for sphinx-argparse-cli."""
    parser = main.parser([])
    action = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    for name, module, _ in main.COMMANDS:
        getattr(importlib.import_module(f"pytest_dbcluster.cli.{module}"), f"add_{name}")(action.choices[name])
    return parser

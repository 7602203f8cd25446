"""Options of pytest and of ``dbcluster``, from their parsers."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import re
from collections.abc import Callable
from typing import Any

import examples
from entries import code, entry, example, page, prose

from pytest_dbcluster.cli import main
from pytest_dbcluster.plugin import command_line


@dataclasses.dataclass(frozen=True)
class PytestOption:
    """An option of pytest as the plugin declares it."""

    name: str
    metavar: str
    help: str
    default: object
    group: str


def pytest_options() -> list[PytestOption]:
    """Every option ``--db-...``."""
    found = []

    def group(title: str) -> Callable[..., None]:
        def add(name: str, **given: Any) -> None:
            words = given.get("metavar", ""), given.get("help", ""), given.get("default")
            found.append(PytestOption(name, *words, title.removeprefix("database clusters: ")))

        return add

    command_line.add_options(group)
    return found


def options() -> str:
    """The options of pytest in groups, each with its help, its default and an example."""
    known = pytest_options()
    parts = ["```{program} pytest\n```\n"]
    for title in dict.fromkeys(option.group for option in known):
        parts.append(f"## {title[0].upper()}{title[1:]}\n")
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
    """The parser of ``dbcluster`` with the options of all its commands, for sphinx-argparse-cli.

    Empty defaults are left out, which the page would show as ``[]``.
    """
    parser = main.parser([])
    action = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    for name, module, _ in main.COMMANDS:
        getattr(importlib.import_module(f"pytest_dbcluster.cli.{module}"), f"add_{name}")(action.choices[name])
    _hide_empty_defaults(parser)
    return parser


def _hide_empty_defaults(parser: argparse.ArgumentParser) -> None:
    """Make each default that is an empty list or text None, also in the parser's own commands."""
    for action in parser._actions:
        action.default = None if action.default in ([], "") else action.default
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _hide_empty_defaults(child)

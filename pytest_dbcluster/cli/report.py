"""``dbcluster report DIR...``: make the page of results directories again, and print their claims by release."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.formatting import counted, printable
from pytest_dbcluster.reporting.allure import allure_page, program
from pytest_dbcluster.reporting.page import release_view, report_page, sources
from pytest_dbcluster.reporting.results_directory import PAGE
from pytest_dbcluster.reporting.tables import layout

MARKDOWN = ".md"


def run_report(arguments: argparse.Namespace) -> int:
    """``dbcluster report``: write the page; return 0. Raises ConfigError for directories without results of ours.

    With ``--output FILE.md`` only the table of claims by release is written. Allure's page is made as well where Allure
    and Node.js are there; with ``--allure`` they must be, and Allure is fetched. Raises Unsupported without the
    packages of the page.
    """
    directories = [Path(name) for name in arguments.directories]
    output = _output(arguments.output, directories)
    read = sources.read_all(directories)
    if arguments.allure:
        allure_page.check(read, output)
    for source in read:
        for note in source.notes:
            tell(f"{source.name}: {note}")
    keyed = [(source, record, "") for source in read for record in source.claims]
    releases = release_view.view(keyed)
    if releases is not None:
        made = release_view.block(releases)
        print("\n".join(printable(line) for line, _ in layout.text(made, sys.maxsize)))
    if output.suffix == MARKDOWN:
        if releases is None:
            raise ConfigError(f"{output}: its table needs two releases or directories; name more directories")
        report_page.write(layout.markdown(release_view.block(releases)) + "\n", output)
    else:
        if lacks := report_page.missing():
            raise Unsupported(lacks)
        report_page.write(report_page.html(read), output)
    print(f"report: {output} ({counted(len(keyed), 'claim')})")
    if output.suffix != MARKDOWN:
        _allure(read, output, must=arguments.allure)
    return 0


def _allure(read: Sequence[sources.Source], page: Path, *, must: bool) -> None:
    """Make Allure's page. must: Allure is fetched, and an error is raised; else it is printed."""
    if must:
        print(allure_page.make(read, page, program.fetch(tell), tell))
    elif line := allure_page.try_to_make(read, page, tell):
        print(line)


def _output(given: str | None, directories: list[Path]) -> Path:
    """The file to write. Raises ConfigError for several directories without ``--output``."""
    if given is not None:
        path = Path(given)
        return path / PAGE if path.is_dir() else path
    if len(directories) > 1:
        raise ConfigError("several results directories have one page together: give --output FILE.html")
    return directories[0] / PAGE

"""``dbcluster report DIR...``: make the page of results directories again, and print their claims side by side."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.formatting import printable, quantity
from pytest_dbcluster.reporting.allure import allure_page, program
from pytest_dbcluster.reporting.page import comparison_view, report_page, sources
from pytest_dbcluster.reporting.page.comparison_view import ComparisonView
from pytest_dbcluster.reporting.page.making import Making
from pytest_dbcluster.reporting.results_directory import PAGE, SUMMARY
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.system import probes

MARKDOWN = ".md"
SUFFIXES = (".html", ".htm", MARKDOWN)


def add_report(report: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster report`` to its parser."""
    report.set_defaults(run=run_report)
    report.epilog = (
        "The page is one file that needs no network. If claims have several releases, topologies, storages, machines "
        "or runs, the command also prints them side by side, and writes the table as Markdown beside the page. "
        "--output FILE.md writes only that table."
    )
    report.add_argument("directories", nargs="+", metavar="DIR", help="a results directory, such as reports/latest")
    report.add_argument("--output", metavar="FILE", help="the file to write (default DIR/index.html)")
    report.add_argument("--allure", action="store_true", help="also make Allure's page, allure.html; fetches Allure 3")
    report.add_argument(
        "--by",
        default="release",
        metavar="WHAT",
        help="the columns of the printed table: release (default), topology, storage, machine or run",
    )


def run_report(arguments: argparse.Namespace) -> int:
    """``dbcluster report``: write the page; return 0.

    It prints claims side by side, and writes the table as Markdown beside the page. With ``--output FILE.md`` it writes
    only this table. If Allure and Node.js are there, it also makes Allure's page; with ``--allure`` it fetches Allure,
    and needs Node.js. Raises ConfigError for directories without results, and Unsupported without the packages of the
    page.
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
    view = comparison_view.view(keyed, arguments.by)
    if view:
        print("\n".join(printable(line) for line, _ in layout.text(comparison_view.block(view), sys.maxsize)))
        print("\n".join(view.notes), end="\n" * bool(view.notes))
    elif said := _why_no_comparison(keyed, arguments.by, len(read)):
        tell(said)
    if output.suffix == MARKDOWN:
        if view is None:
            raise ConfigError(f"{output}: there is no table, because no claim has two {_plural(arguments.by)}")
        _write_table(view, output)
        return 0
    if lacks := report_page.missing():
        raise Unsupported(lacks)
    report_page.write(report_page.html(read, Making(tell, processes=math.ceil(probes.usable_cores()))), output)
    print(f"report: {output} ({quantity(len(keyed), 'claim')})")
    if view:
        _write_beside(view, output.with_suffix(MARKDOWN))
    _allure(read, output, must=arguments.allure)
    return 0


def _allure(read: Sequence[sources.Source], page: Path, *, must: bool) -> None:
    """Make Allure's page. must: fetch Allure, and raise an error; otherwise print the error."""
    if must:
        print(allure_page.make(read, page, program.fetch(tell), tell))
    elif line := allure_page.try_to_make(read, page, tell):
        print(line)


def _plural(by: str) -> str:
    return f"{by[:-1]}ies" if by.endswith("y") else f"{by}s"


def _why_no_comparison(keyed: comparison_view.Keyed, by: str, directories: int) -> str:
    """The sentence if no claim is in two columns; empty for one run, where that is normal."""
    others = [view.by for view in comparison_view.views(keyed)]
    if others:
        return f"no claim has two {_plural(by)}; --by {' or --by '.join(others)} compares them"
    return f"no claim has two {_plural(by)}" if directories > 1 or by != comparison_view.KNOWN[0] else ""


def _write_beside(view: ComparisonView, path: Path) -> None:
    """Write the view as Markdown beside the page; any other file stays."""
    if _is_table(path):
        _write_table(view, path)
    else:
        tell(f"{path} was not written by this command, so it stays; to write the table: --output FILE{MARKDOWN}")


def _is_table(path: Path) -> bool:
    """Whether a file is missing, or begins as a table of this command."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline().startswith(comparison_view.HEADING)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _write_table(view: ComparisonView, path: Path) -> None:
    """Write the view as Markdown, and print its path."""
    notes = "".join(f"- {note}\n" for note in view.notes)
    report_page.write(layout.markdown(comparison_view.block(view)) + f"\n{notes}", path)
    print(f"table: {path} ({quantity(len(view.rows), 'row')})")


def _output(given: str | None, directories: list[Path]) -> Path:
    """The file to write.

    Raises ConfigError for several directories without ``--output``, and for a name that is not of a page or table: it
    may be that of a file with results.
    """
    if given is not None:
        path = Path(given)
        path = path / PAGE if path.is_dir() else path
        if path.suffix not in SUFFIXES or path.name == SUMMARY:
            raise ConfigError(f"cannot write {path}: --output needs a name that ends in .html or .md, such as all.html")
        return path
    if len(directories) > 1:
        raise ConfigError("several results directories have one page: add --output FILE.html")
    return directories[0] / PAGE

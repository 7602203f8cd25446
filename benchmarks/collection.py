"""The time that the plugin adds to `pytest --collect-only`: wall time of whole processes, alternating.

    python benchmarks/collection.py [--runs 20]

"suites": suites/ with the plugin. "plain": the same number of files and tests, with the same names, without the
plugin (-p no:dbcluster). "installed": the plain files with the plugin, which is the cost for a project that installs
the plugin but does not use it. The target is for suites - plain.
"""

from __future__ import annotations

import collections
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import ratios, stage
from pytest_dbcluster.errors import ProvisionError

TARGET = 0.1
PYTEST = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
WITHOUT = ("-p", "no:dbcluster")


def collect(directory: Path, *options: str) -> str:
    """The output of one collection. Raises ProvisionError with the output if the collection fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    command = [*PYTEST, *options, str(directory)]
    done = subprocess.run(command, cwd=stage.ROOT, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise ProvisionError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def plain_files(listing: str) -> dict[str, str]:
    """Test files that collect to the ids of a listing: same paths, functions and parameters, no imports of suites."""
    functions_of: dict[str, dict[str, list[str]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in listing.splitlines():
        path, colons, test = line.partition("::")
        if colons:
            function, _, parameter = test.partition("[")
            functions_of[path][function].append(parameter.rstrip("]"))
    return {path: _source(functions) for path, functions in functions_of.items()}


def _source(functions: dict[str, list[str]]) -> str:
    lines = ["import pytest", ""]
    for name, parameters in functions.items():
        if any(parameters):
            lines += [f"@pytest.mark.parametrize('mode', {parameters!r})", f"def {name}(mode):", "    assert mode", ""]
        else:
            lines += [f"def {name}():", "    assert True", ""]
    return "\n".join(lines)


def write(files: dict[str, str], directory: Path) -> None:
    """Write the files into a directory, as a pytest project with its own pytest.ini."""
    (directory / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers --import-mode=importlib\n")
    for path, source in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source)


def table(names: Sequence[str], columns: Sequence[Sequence[float]]) -> str:
    """The seconds of each kind, and their difference to the last kind, run by run."""
    lines = ["| collection of | seconds | more than plain, seconds |", "|---|---|---|"]
    for name, column in zip(names, columns, strict=True):
        more = "" if column is columns[-1] else str(ratios.difference(column, columns[-1]))
        lines.append(f"| {name} | {ratios.Figure.of(column)} | {more} |")
    return "\n".join(lines)


def main() -> None:
    """Reads the command line and prints the table."""
    arguments = ratios.arguments(__doc__, 20, "collections of each kind").parse_args()
    suites = stage.ROOT / "suites"
    with tempfile.TemporaryDirectory(prefix="dbcluster-collect-") as name:
        project = Path(name)
        write(plain_files(collect(suites)), project)
        kinds = {
            "suites": functools.partial(collect, suites),
            "installed": functools.partial(collect, project),
            "plain": functools.partial(collect, project, *WITHOUT),
        }
        for kind in kinds.values():
            kind()  # not measured: writes the .pyc files
        columns = ratios.alternate(
            arguments.runs, *(functools.partial(ratios.seconds, kind) for kind in kinds.values())
        )
    print(table(list(kinds), columns))
    more = ratios.difference(columns[0], columns[-1]).median
    print(f"\nsuites - plain, seconds: {more:.3f}, {ratios.target_text(more, TARGET)}")


if __name__ == "__main__":
    ratios.run(main)

"""What the plugin adds to `pytest --collect-only`: whole processes, wall time, alternating.

    python benchmarks/collection.py [--runs 20]

"suites": suites/ with the plugin. "plain": as many tests of the same names in as many files, without it
(-p no:dbcluster). "installed": the plain ones with the plugin, which is what a project pays that has it and does
not use it. The target is for suites - plain.
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

TARGET = 0.15
PYTEST = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
WITHOUT = ("-p", "no:dbcluster")


def collect(place: Path, *options: str) -> str:
    """What one collection prints. Raises ProvisionError with its words when it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    command = [*PYTEST, *options, str(place)]
    done = subprocess.run(command, cwd=stage.ROOT, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise ProvisionError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def plain_files(listing: str) -> dict[str, str]:
    """Test files that collect to the ids of a listing: same files, functions and parameters, nothing imported."""
    found: dict[str, dict[str, list[str]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in listing.splitlines():
        path, colons, test = line.partition("::")
        if colons:
            function, _, parameter = test.partition("[")
            found[path][function].append(parameter.rstrip("]"))
    return {path: _source(functions) for path, functions in found.items()}


def _source(functions: dict[str, list[str]]) -> str:
    lines = ["import pytest", ""]
    for name, parameters in functions.items():
        if any(parameters):
            lines += [f"@pytest.mark.parametrize('mode', {parameters!r})", f"def {name}(mode):", "    assert mode", ""]
        else:
            lines += [f"def {name}():", "    assert True", ""]
    return "\n".join(lines)


def write(files: dict[str, str], place: Path) -> None:
    """Write the files under a directory that is a project of its own."""
    (place / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers --import-mode=importlib\n")
    for path, source in files.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source)


def table(names: Sequence[str], columns: Sequence[Sequence[float]]) -> str:
    """The seconds of each kind, and what each takes more than the last one, run by run."""
    lines = ["| collection of | seconds | more than plain, seconds |", "|---|---|---|"]
    for name, column in zip(names, columns, strict=True):
        more = "" if column is columns[-1] else str(ratios.difference(column, columns[-1]))
        lines.append(f"| {name} | {ratios.Figure.of(column)} | {more} |")
    return "\n".join(lines)


def main() -> None:
    """Reads the command line and prints the table."""
    said = ratios.arguments(__doc__, 20, "collections of each kind").parse_args()
    suites = stage.ROOT / "suites"
    with tempfile.TemporaryDirectory(prefix="dbcluster-collect-") as name:
        place = Path(name)
        write(plain_files(collect(suites)), place)
        kinds = {
            "suites": functools.partial(collect, suites),
            "installed": functools.partial(collect, place),
            "plain": functools.partial(collect, place, *WITHOUT),
        }
        for kind in kinds.values():
            kind()  # compiled files are written here
        columns = ratios.alternate(said.runs, *(functools.partial(ratios.seconds, kind) for kind in kinds.values()))
    print(table(list(kinds), columns))
    more = ratios.difference(columns[0], columns[-1]).median
    print(f"\nsuites - plain, seconds: {more:.3f}, {ratios.met(more, TARGET)}")


if __name__ == "__main__":
    ratios.run(main)

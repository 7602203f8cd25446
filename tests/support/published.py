"""Published claims of the suites, their stored results, and a copy of what the site is made of."""

from __future__ import annotations

import importlib.util
import shutil
import sys

from tests.support.command import ROOT
from tests.support.results import results

EXTENSIONS = ROOT / "docs" / "_ext"
FLUSH = "galera-parameters-2022"
LINKED = ("suites", "fixtures", "conftest.py", "pyproject.toml", "pytest_dbcluster")


def module(name):
    """A module of the site's extensions, or a script."""
    folder = EXTENSIONS if (EXTENSIONS / f"{name}.py").exists() else ROOT / "scripts"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def claim_of(known, text, load="mysqlslap write c50"):
    """The published claim with this text."""
    (found,) = [claim for claim in known if (claim.text, claim.load) == (text, load)]
    return found


def stored(known, directory, *records, into=None):
    """Store these records as those of a run; return the directory of the stored results."""
    into = into or directory / "stored"
    module("published_results").store(results(directory / f"run{len(list(directory.iterdir()))}", records), known, into)
    return into


def copied(root):
    """Copy the pages of the site, with their stored results; what they are made of is linked."""
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("_build", "generated"))
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    for path in ROOT.glob("*.md"):  # a link in them leads to the copied pages
        shutil.copy(path, root)

"""``dbcluster init``: write a first test, its my.cnf and a GitHub workflow into a directory.

It overwrites no file. The texts are a small project that works without changes: one server, two claims. With
``--workload`` it writes a test of a directory of SQL files, and the directory itself if it is missing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_dbcluster.cli.log_digest import add_digest, refuse_without_log, run_digest
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.workloads.sql import SQLFiles, example

PACKAGE = "pytest-dbcluster"
TEST, CNF, WORKFLOW = "test_performance.py", "fixtures/mycnf/candidate.cnf", ".github/workflows/performance.yml"
PYTEST_INI, GITIGNORE = "pytest.ini", ".gitignore"
# One of these makes its directory the root of pytest, which contains fixtures/mycnf and reports/latest.
CONFIGURATIONS = (PYTEST_INI, ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg")
TEST_TEXT = '''\
"""Is the candidate my.cnf better than the server's defaults? Put your own cluster, options and workloads here."""

from pytest_dbcluster import ClusterSpec, Measure, MySQLSlap

DEFAULT = ClusterSpec("standalone")  # a cluster is, for example, ClusterSpec("galera", nodes=3, proxy="haproxy")
CANDIDATE = DEFAULT.with_cnf("candidate")  # fixtures/mycnf/candidate.cnf


def test_inserts_flush_less_and_are_no_slower(measure: Measure) -> None:
    """The candidate saves flushes, and inserts lose less than 15 %."""
    default, candidate = measure(MySQLSlap("write"), on=[DEFAULT, CANDIDATE])

    assert candidate.lower("fsyncs_per_commit", than=default)
    assert candidate.no_slower_than(default, by=0.15)  # or, on a disk with slow flushes: candidate.beats(default)
'''
OWN_TEST_TEXT = '''\
"""Does an option make the transactions of {name} faster? Put your own cluster and options here."""

import dataclasses
from pathlib import Path

from pytest_dbcluster import ClusterSpec, Measure, SQLFiles

WORKLOAD = SQLFiles(Path(__file__).parent / {path}, threads=8)
DEFAULT = ClusterSpec("standalone", name="default")  # or, for example, ClusterSpec("galera", nodes=3, name="default")
CANDIDATE = DEFAULT.with_options(innodb_adaptive_hash_index=1).named("candidate")


def test_all_transactions_are_no_slower(measure: Measure) -> None:
    """All transactions, mixed by their weights, lose less than 10 %."""
    default, candidate = measure(WORKLOAD, on=[DEFAULT, CANDIDATE])

    assert candidate.no_slower_than(default, by=0.1)


def test_{function}_waits_no_longer(measure: Measure) -> None:
    """At a fixed rate, 95 % of the transactions of {transaction}.sql end as early, within 20 %."""
    workload = dataclasses.replace(WORKLOAD, rate="70 %")
    default, candidate = measure(workload, on=[DEFAULT, CANDIDATE])

    assert candidate.no_slower_than(default, by=0.2, metric="p95:{transaction}")
'''
CNF_TEXT = """\
# The options that the tests compare with the server's defaults.
[mysqld]
# A commit writes the log and does not flush it. A crash of the machine loses up to a second of commits.
innodb_flush_log_at_trx_commit = 2
"""
PYTEST_TEXT = """\
[pytest]
# The directory of this file is the root, with fixtures/mycnf and reports/latest.
addopts = -ra
"""
GITIGNORE_TEXT = """\
/.venv/
/reports/latest/
__pycache__/
"""
WORKFLOW_TEXT = """\
# Measures the claims of this project for each pull request. Machines of GitHub are small and shared: expect wide
# intervals. An inconclusive claim does not fail the job; add --db-strict if it should.
name: performance

on:
  pull_request:
  workflow_dispatch:

permissions:
  contents: read

env:
  PYTEST_DBCLUSTER: {requirement}
  XDG_CACHE_HOME: /home/runner/.cache

jobs:
  claims:
    runs-on: ubuntu-24.04
    # The servers come from Debian's mirrors.
    container:
      image: debian:12
      options: --init
    timeout-minutes: 30
    steps:
      - run: apt-get update && apt-get install --yes git python3 python3-venv
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1  # v7.0.1
        with:
          persist-credentials: false
      - uses: actions/cache@27d5ce7f107fe9357f9df03efb73ab90386fccae  # v5.0.5
        with:
          path: ${{{{ env.XDG_CACHE_HOME }}}}/pytest-dbcluster/releases
          key: dbcluster-releases-{release}
      # The checkout belongs to the user of the runner, and git in the container is root's: results name the commit.
      - run: git config --global --add safe.directory "$PWD"
      - run: python3 -m venv .venv && .venv/bin/pip install "$PYTEST_DBCLUSTER"
      - run: .venv/bin/pytest --db-release {release} --db-budget 60
      - uses: actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f  # v7.0.0
        if: always()
        with:
          name: results
          path: reports/latest
          if-no-files-found: ignore
"""


def _origin() -> dict[str, Any]:
    """Where this package was installed from, as pip records it (PEP 610); empty for an index."""
    try:
        text = importlib.metadata.distribution(PACKAGE).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:  # a directory on the module path
        return {"url": "file:"}
    origin: dict[str, Any] = json.loads(text) if text else {}
    return origin


def requirement() -> str:
    """The argument of ``pip install`` on another machine: the URL of this package's installation, or its name."""
    origin = _origin()
    url = str(origin.get("url", ""))
    if not url.startswith("https://"):  # a directory of this machine, or an index
        return f"{PACKAGE}[all]"
    vcs = origin.get("vcs_info")
    return f"{PACKAGE}[all] @ " + (f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url)


def files(directory: Path) -> dict[str, str]:
    """The files to write, path -> text.

    Without pytest.ini if pytest has a configuration, and without .gitignore if one exists.
    """
    workflow = WORKFLOW_TEXT.format(requirement=json.dumps(requirement()), release=DEFAULT_RELEASE)
    texts = {TEST: TEST_TEXT, CNF: CNF_TEXT, WORKFLOW: workflow}
    configured = any((directory / name).exists() for name in CONFIGURATIONS)
    if not configured:
        texts[PYTEST_INI] = PYTEST_TEXT
    if not (directory / GITIGNORE).exists():
        texts[GITIGNORE] = GITIGNORE_TEXT
    return texts


def write(directory: Path, texts: Mapping[str, str]) -> None:
    """Write these files below the directory, and create it if it is missing.

    If one of the files exists, this raises ConfigError before it writes anything. If a file is not writable, it raises
    ProvisionError, which lists the files written so far.
    """
    if present := [name for name in texts if (directory / name).exists() or (directory / name).is_symlink()]:
        raise ConfigError(
            f"{directory} already has {', '.join(present)}; dbcluster init overwrites nothing; name another directory"
        )
    written: list[str] = []
    for name, text in texts.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x") as file:  # follows no link, and overwrites no new file
                file.write(text)
        except OSError as error:
            done = f"; written before: {', '.join(written)}" if written else ""
            raise ProvisionError(f"cannot write {path}: {error.strerror}{done}") from error
        written.append(name)


def add_init(init: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster init`` to its parser."""
    init.set_defaults(run=run_init)
    init.usage = (
        "%(prog)s [--workload DIR] [DIRECTORY]\n       %(prog)s --workload DIR --from LOG --schema FILE [options]"
    )
    init.add_argument("directory", nargs="?", default=".", metavar="DIRECTORY", help="default: this directory")
    init.add_argument(
        "--workload",
        metavar="DIR",
        help="a test of the SQL files in DIR, below DIRECTORY; if DIR is missing, it is written too, as an example",
    )
    add_digest(init)


def run_init(arguments: argparse.Namespace) -> int:
    """``dbcluster init [DIRECTORY]``: write the files of a small project, and print the next steps.

    With ``--workload`` it writes a test of SQL files, and with ``--from`` the SQL files of a log.
    """
    if arguments.from_log is not None:
        return run_digest(arguments, write)
    refuse_without_log(arguments)
    directory = Path(arguments.directory)
    if arguments.workload is not None:
        return _init_workload(directory, arguments.workload)
    texts = files(directory)
    write(directory, texts)
    print(f"wrote into {directory.absolute()}:")
    about = {
        TEST: "two claims about one server, with and without the my.cnf",
        CNF: "the options that the claims are about",
        WORKFLOW: "runs the claims on GitHub",
        PYTEST_INI: "makes the directory the root of pytest",
        GITIGNORE: "keeps results out of git",
    }
    print("\n".join(f"  {name:{max(map(len, texts))}}  {about[name]}" for name in texts))
    change = "" if directory.absolute() == Path.cwd() else f"cd {shlex.quote(str(directory))} && "
    print(f"run it:   {change}pytest      (downloads {DEFAULT_RELEASE} the first time, takes one to two minutes)")
    print(f"then:     put your options into {CNF}, and your cluster and workloads into {TEST}")
    if str(_origin().get("url", "")).startswith("file:"):
        print(f"on GitHub: a job there cannot install from this machine; set PYTEST_DBCLUSTER in {WORKFLOW} to a URL")
    return 0


def own_files(directory: Path, given: str) -> dict[str, str]:
    """The files of ``--workload``, path -> text: the test, and those of the example if there is no such directory.

    given: the directory of SQL files, below ``directory``. Raises ConfigError for a file, for a place outside of
    ``directory``, and for the first mistake in an existing directory.
    """
    path = os.path.normpath(given)
    place = directory / path
    if Path(path).is_absolute() or Path(path).parts[:1] in ((), (os.pardir,)):
        raise ConfigError(f"--workload {given}: it accepts a directory below {directory.absolute()}, such as shop/")
    if place.exists() and not place.is_dir():
        raise ConfigError(f"--workload {given}: this is a file; name a directory, such as shop/")
    if place.is_dir() and any(place.iterdir()):
        *_, (last, _) = SQLFiles(place).read.scripts
        transaction, written = last.name, {}
    else:
        transaction = "order"
        written = {f"{path}/{name}": text for name, text in example.FILES.items()}
    stem = re.sub(r"\W", "_", Path(path).name)
    text = OWN_TEST_TEXT.format(
        name=f"{Path(path).name}/",
        path=json.dumps(path),
        transaction=transaction,
        function=re.sub(r"\W", "_", transaction),
    )
    return {**written, f"test_{stem}.py": text}


def _init_workload(directory: Path, given: str) -> int:
    """Write the files of ``--workload``, and print the next steps; return 0."""
    texts = own_files(directory, given)
    write(directory, texts)
    *others, test = texts
    print(f"wrote into {directory.absolute()}:")
    print("\n".join(f"  {name}" for name in texts))
    path = os.path.normpath(given)
    change = "" if directory.absolute() == Path.cwd() else f"cd {shlex.quote(str(directory))} && "
    print(f"run it:   {change}pytest {test}      (downloads {DEFAULT_RELEASE} the first time, takes two minutes)")
    print(f"compare:  {change}dbcluster compare --cnf current.cnf --cnf candidate.cnf --workload {shlex.quote(path)}/")
    if others:
        print(f"then:     put your own tables and transactions into {path}, and your options into {test}")
    else:
        print(f"then:     put your cluster and your options into {test}")
    return 0

"""The commands releases and fetch: what they print, and how a fetch ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.cli import main
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases import release as releases
from pytest_dbcluster.releases.find import Known


def test_releases_is_a_table(monkeypatch, capsys):
    """A row for each release and source, its size where it is known; below it the products that nobody has run."""
    rows = [
        Known("mariadb:10.11", "cached", "10.11.19", 147_000_000, "/x", "Debian"),
        Known("mysql:8.4", "untried", source="bookworm of http://x", supplier="MySQL's repository"),
    ]
    monkeypatch.setattr(find, "list_releases", lambda: rows)

    assert main.main(["releases"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "release        source              state    version   size    where",
        "mariadb:10.11  Debian              cached   10.11.19  147 MB  /x",
        "mysql:8.4      MySQL's repository  untried                    bookworm of http://x",
        "",
        "untried from every source: percona, pxc",
    ]


def test_fetch_tells_of_each_release(monkeypatch, capsys):
    """One line for each, with the directory that goes into PATH."""

    def found(name, *, progress):
        progress(f"fetching {name}")
        return releases.Release(name, name, "1.2", Path("/bin"), source="here")

    monkeypatch.setattr(find, "find", found)

    assert main.main(["fetch", "sysbench", "haproxy"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "sysbench 1.2: /bin (here)\nhaproxy 1.2: /bin (here)\n"
    assert shown.err == "fetching sysbench\nfetching haproxy\n"


def test_a_signal_ends_a_fetch_with_a_sentence(tmp_path):
    """Nothing of the release stays, nor a directory that was made for it, nor a program; the lock's file does."""
    cached = tmp_path / "pytest-dbcluster"
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_dbcluster.cli.main", "fetch", "haproxy"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "DBCLUSTER_TEST_MARK": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait.until(
            lambda: [] if apt_programs(tmp_path) else ["no apt"], "a program of the fetch", seconds=300, poll=0.005
        )
        process.terminate()
        _, said = process.communicate(timeout=100)
    finally:
        process.kill()

    assert process.returncode == 143
    assert said.endswith("dbcluster: ended by SIGTERM\n")
    assert "Traceback" not in said
    assert [path for path in cached.rglob("*") if not path.is_relative_to(cached / "locks")] == []
    wait.until(lambda: apt_programs(tmp_path), "the end of the programs of the fetch", seconds=60)


def apt_programs(mark):
    """The command lines of the programs, other than Python, that a process with this mark has started."""
    found = []
    for program in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if program.environ().get("DBCLUSTER_TEST_MARK") == str(mark) and "python" not in program.name():
                found.append(" ".join(program.cmdline()))
    return found

"""The lock on a results directory: who has it, how it ends, and which directories cannot be had."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting import results_lock
from tests.support.facts import missing

HOLDER = """\
import sys, time
from pathlib import Path
from pytest_dbcluster.reporting import results_lock
lock = results_lock.take(Path(sys.argv[1]))
print("taken", flush=True)
time.sleep(600)
"""
NOBODY = 65534


def test_every_run_at_a_time_has_a_directory_of_its_own(tmp_path):
    """The second and the third get a number; who lets go is followed by the next."""
    locks = [results_lock.take(tmp_path / "latest") for _ in range(3)]
    names = [lock.directory.name for lock in locks]
    for lock in locks:
        lock.release()
        lock.release()
    again = results_lock.take(tmp_path / "latest")
    again.release()

    assert names == ["latest", "latest-2", "latest-3"]
    assert [bool(lock.line) for lock in locks] == [False, True, True]
    assert (again.directory, again.line) == (tmp_path / "latest", "")


def test_a_killed_run_holds_nothing(tmp_path):
    """The lock is the kernel's: it ends with the process, not with a file that would stay."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"taken\n"
        beside = results_lock.take(tmp_path)
        holder.send_signal(signal.SIGKILL)
    after = results_lock.take(tmp_path)
    beside.release()
    after.release()

    assert beside.directory == tmp_path.with_name(f"{tmp_path.name}-2")
    assert after.directory == tmp_path


@pytest.mark.parametrize("name", ["index.html", "summary.md", "charts/sales.svg"])
def test_files_of_somebody_else_are_not_removed(tmp_path, name):
    """Without a run, such as in a directory of documents, they are not results, whatever they are called."""
    (tmp_path / "charts").mkdir()
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError) as caught:
        results_lock.take(tmp_path)

    assert missing(str(caught.value), tmp_path, name, "no run has written", "--db-results DIR") == []
    assert (tmp_path / name).read_text() == "mine"

    (tmp_path / "run.json").write_text("{}")
    results_lock.take(tmp_path).release()
    assert not (tmp_path / name).exists()


def test_what_lies_in_the_directory_is_no_lock(tmp_path):
    """Taking and releasing adds the folders of results, and no other file."""
    results_lock.take(tmp_path).release()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["charts", "curves", "rounds", "timeline"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_directory_of_another_owner_is_refused_with_the_owner():
    """The message names the directory, its owner and the option."""
    with tempfile.TemporaryDirectory() as place:  # one that others may enter, which tmp_path is not
        Path(place).chmod(0o755)
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            try:
                os.setuid(NOBODY)
                results_lock.take(Path(place) / "latest")
            except BaseException as error:
                os.write(writing, f"{type(error).__name__}: {error}".encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            why = f"cannot write results into {place}/latest: Permission denied ({place} belongs to root)"
            assert missing(said.read(), f"ConfigError: {why}", "another", "--db-results DIR") == []


def test_a_name_on_a_file_is_refused(tmp_path):
    """A path through a file names that file."""
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=rf"^cannot write results into {tmp_path}/file/x: {tmp_path}/file is a file"):
        results_lock.take(tmp_path / "file" / "x")

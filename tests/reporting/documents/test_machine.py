"""The machine of a run, and the commit of a project."""

from __future__ import annotations

import subprocess

import pytest

from pytest_dbcluster.reporting.documents import machine

IDENTITY = "3d1219c7c4c5404aaa1f6d2a48adfda4"
AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.org")


def git(directory, *words):
    """Run git in a directory."""
    subprocess.run(["git", *AUTHOR, *words], cwd=directory, check=True, capture_output=True)


def test_the_machine_has_every_figure(tmp_path):
    """A data directory that does not exist yet lies where it will be."""
    this = machine.machine(tmp_path / "later")

    assert this.cpu
    assert 0 < this.cores <= this.cpus
    assert this.memory > 2**20
    assert this.kernel
    assert this.file_system == machine.machine(tmp_path).file_system != "unknown"


def test_the_id_is_the_same_for_one_machine_and_does_not_name_it(tmp_path, monkeypatch):
    """It is no part of the machine id, nor its plain hash."""
    monkeypatch.setattr(machine, "MACHINE_ID", tmp_path / "machine-id")
    (tmp_path / "machine-id").write_text(f"{IDENTITY}\n")
    first = machine.machine(tmp_path).id
    (tmp_path / "machine-id").write_text(f"{IDENTITY[::-1]}\n")

    assert len(first) == machine.ID_LENGTH
    assert first not in IDENTITY
    assert machine.machine(tmp_path).id not in (first, "")


@pytest.mark.parametrize("text", ["", "\n", None])
def test_a_machine_without_an_id_has_none(tmp_path, monkeypatch, text):
    """So do many containers; machines without one are not taken for one and the same."""
    monkeypatch.setattr(machine, "MACHINE_ID", tmp_path / "machine-id")
    if text is not None:
        (tmp_path / "machine-id").write_text(text)

    assert machine.machine(tmp_path).id == ""


def test_the_commit_of_a_project_and_whether_it_was_changed(tmp_path):
    """Files that git does not track, such as results, change nothing."""
    git(tmp_path, "init")
    assert machine.commit(tmp_path) == (None, None)
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "one")
    (tmp_path / "other").write_text("not tracked")
    clean = machine.commit(tmp_path)
    (tmp_path / "file").write_text("two")

    assert clean[1] is False
    assert len(clean[0]) == 40
    assert machine.commit(tmp_path) == (clean[0], True)


def test_a_project_without_a_repository_or_git_has_no_commit(tmp_path, monkeypatch):
    """That is no error."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert machine.commit(tmp_path) == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.commit(tmp_path) == (None, None)

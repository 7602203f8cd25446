"""The clean-up commands of a run: recorded, run when the run is ended, and never somebody else's."""

from __future__ import annotations

import json
import os
import stat
import time

import pytest

from pytest_dbcluster.hosts import cleanup, runs
from pytest_dbcluster.hosts.cleanup import Command
from pytest_dbcluster.hosts.local_run import LocalRun
from tests.support.run_ids import RUN_ID


@pytest.fixture
def run(tmp_path):
    """The directory of a run, this user's."""
    made = tmp_path / RUN_ID
    made.mkdir(mode=0o700)
    return made


def touching(path, **environment):
    """A command that makes a file."""
    return Command(["touch", str(path)], environment)


def write(run, text, mode=0o600):
    """A file of commands, written by hand."""
    (run / cleanup.FILE).write_text(text)
    (run / cleanup.FILE).chmod(mode)


def test_commands_are_recorded_in_their_order_for_this_user_alone(run):
    """What a command needs of its environment may not be for everybody."""
    first, second = Command(["one", "1"], {"DOCKER_HOST": "unix:///x"}), Command(["two"], {})
    cleanup.record(run, first)
    cleanup.record(run, second)

    assert cleanup.read_commands(run) == [first, second]
    assert stat.S_IMODE((run / cleanup.FILE).stat().st_mode) == 0o600
    assert [path.name for path in run.iterdir()] == [cleanup.FILE]


def test_each_command_runs_with_its_environment_and_says_nothing(run, tmp_path, capfd):
    """Beside the variables of whoever runs it, PATH among them."""
    script = 'echo loud; echo louder >&2; echo "$WORD" >"$WHERE"'
    cleanup.record(run, Command(["sh", "-c", script], {"WORD": "its own", "WHERE": str(tmp_path / "said")}))
    cleanup.record(run, touching(tmp_path / "second"))

    cleanup.run(run)

    assert (tmp_path / "said").read_text() == "its own\n"
    assert (tmp_path / "second").exists()
    assert capfd.readouterr() == ("", "")


def test_commands_that_fail_are_no_error(run, tmp_path):
    """A program that is gone, one that fails, and one that does not end; those after them run."""
    for argv, seconds in ((["/no/such/program"], 60.0), (["false"], 60.0), (["sleep", "60"], 0.5)):
        cleanup.record(run, Command(argv, {}, seconds))
    cleanup.record(run, touching(tmp_path / "last"))
    began = time.monotonic()

    cleanup.run(run)

    assert (tmp_path / "last").exists()
    assert time.monotonic() - began < 30


def test_a_command_may_have_another_timeout(run, tmp_path):
    """What frees resources of a cloud takes minutes."""
    cleanup.record(run, Command(["sh", "-c", 'sleep 60; touch "$WHERE"'], {"WHERE": str(tmp_path / "late")}, 0.2))
    cleanup.record(run, touching(tmp_path / "last"))
    began = time.monotonic()

    cleanup.run(run)

    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["last"]
    assert time.monotonic() - began < 30
    assert Command(["true"], {}).seconds == 60


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "7",
        '["touch it"]',
        '[{"argv": []}]',
        '[{"argv": [], "environment": {}}]',
        '[{"argv": "touch it", "environment": {}}]',
        '[{"argv": ["touch", 7], "environment": {}}]',
        '[{"argv": ["touch"], "environment": {"A": 7}}]',
    ],
)
def test_what_is_no_list_of_commands_is_none(run, text):
    """Half a file, or one of another format."""
    write(run, text)

    assert cleanup.read_commands(run) == []
    cleanup.run(run)


@pytest.mark.parametrize("what", ["directory", "file"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_may_write_is_not_run(run, tmp_path, what, mode):
    """They could have any command run as this user."""
    cleanup.record(run, touching(tmp_path / "made"))
    path = run if what == "directory" else run / cleanup.FILE
    path.chmod(path.stat().st_mode | mode)

    cleanup.run(run)

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_belongs_to_another_user_is_not_run(run, tmp_path, what):
    """Not even by root, who may read everything."""
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    cleanup.record(run, touching(tmp_path / "made"))
    os.chown(run if what == "directory" else run / cleanup.FILE, 12345, -1)

    cleanup.run(run)

    assert not (tmp_path / "made").exists()


def test_this_user_is_who_runs_it(run, tmp_path, monkeypatch):
    """Whoever it is."""
    cleanup.record(run, touching(tmp_path / "made"))
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)

    cleanup.run(run)

    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("what", ["directory", "file"])
def test_a_link_is_not_followed(run, tmp_path, what):
    """It could lead to a list that was not made for this run."""
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    cleanup.record(other, touching(tmp_path / "made"))
    linked = tmp_path / "linked" if what == "directory" else run
    (linked if what == "directory" else run / cleanup.FILE).symlink_to(
        other if what == "directory" else other / cleanup.FILE
    )

    cleanup.run(linked)

    assert not (tmp_path / "made").exists()


def test_a_pipe_is_not_waited_for(run):
    """Nobody writes to it."""
    os.mkfifo(run / cleanup.FILE, 0o600)

    assert cleanup.read_commands(run) == []


def test_ending_a_run_runs_its_commands_before_its_directory_goes(data, tmp_path):
    """Whoever ends it, without its supervisor."""
    place = data / RUN_ID
    place.mkdir(parents=True, mode=0o700)
    fields = {"owner": 2**22 + 1, "born": 0.0, "kept": False, "began": 1.0}
    (place / runs.FILE).write_text(json.dumps(fields))
    copy = ["cp", str(place / runs.FILE), str(tmp_path / "copied")]
    cleanup.record(place, Command(copy, {}))

    assert [(run.run_id, number) for run, number in runs.reap()] == [(RUN_ID, 0)]

    assert json.loads((tmp_path / "copied").read_text()) == fields
    assert not place.exists()


def test_a_run_records_what_its_supervisor_runs(data, tmp_path, monkeypatch):
    """The same command, by the supervisor with our own variables too; on disk there is only what was added."""
    monkeypatch.setenv("SECRET", "not on disk")
    run = LocalRun()
    script = 'echo "$SECRET, $WORD" >"$WHERE"'
    command = Command(["sh", "-c", script], {"WORD": "added", "WHERE": str(tmp_path / "said")})
    run.clean_up_by(command.argv, command.environment, command.seconds)
    text = (run.directory / cleanup.FILE).read_text()
    found = cleanup.read_commands(run.directory)
    run.close()

    assert found == [command]
    assert "not on disk" not in text
    assert (tmp_path / "said").read_text() == "not on disk, added\n"

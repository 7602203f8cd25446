"""Runs of several users below one directory: nobody's record makes us signal or remove what is not that user's."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.cli import clusters, main, up
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.hosts import cleanup, runs, supervisor
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE
from pytest_dbcluster.system import cgroups, worker_files
from tests.support import groups, users
from tests.support.facts import missing
from tests.support.run_ids import RUN_ID
from tests.support.users import ALICE, MALLORY

DEAD = 2**22 + 1  # no process has this id
RECORD = {"owner": DEAD, "born": 0.0, "kept": True, "began": 1.0}


@pytest.fixture(autouse=True)
def nothing_of_others(monkeypatch, tmp_path):
    """What other runs of this machine have left is none of these tests' business."""
    monkeypatch.setattr(runs, "orphans", list)
    monkeypatch.setattr(runs.cgroups, "reap", lambda: None)
    monkeypatch.setattr(engine, "has_socket", lambda: False)
    monkeypatch.setattr(worker_files, "reap", list)


@pytest.fixture
def shared(open_to_all, monkeypatch):
    """A data directory that all users share."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(open_to_all))
    return open_to_all


@pytest.fixture
def sleeping():
    """``sleeping(RUN_ID, uid)``: a program with the mark of a run, ended at the latest with the test."""
    started = []

    def sleeping(run_id, uid=0):
        process = subprocess.Popen(
            ["sleep", "600"],
            user=uid,
            group=uid,
            extra_groups=[],
            env={**os.environ, RUN_VARIABLE: run_id},
            start_new_session=True,
        )
        started.append(process)
        wait.until(lambda: [] if "sleep" in psutil.Process(process.pid).name() else ["forked"], "it", seconds=20)
        return process

    yield sleeping
    for process in started:
        process.kill()
        process.wait(20)


def make(shared, run_id, uid, files=None, **fields):
    """The directory of a kept run of this user, with further files."""
    directory = shared / run_id
    directory.mkdir(mode=0o700)
    for name, content in {runs.FILE: {**RECORD, **fields}, **(files or {})}.items():
        (directory / name).write_text(content if isinstance(content, str) else json.dumps(content))
        os.chown(directory / name, uid, uid)
    os.chown(directory, uid, uid)
    return directory


def cluster(name, **fields):
    """The record of a kept cluster, as its user may have written it."""
    node = kept.Listener("node1", "127.0.0.1", 1, "/log")
    given = {"run_id": "x", "name": name, "topology": "galera", "release": "m", "version": "1", "client": "c",
             "client_cnf": "f", "directory": "d", "began": 1.0, "nodes": (node,), **fields}  # fmt: skip
    return [kept.dataclasses.asdict(kept.Kept(**given))]


@pytest.fixture
def named(sleeping):
    """A control group of root with the name that mallory's run would have, and a program of root in it.

    The group is one that the test makes, with nothing but the test's own program in it: code that believed mallory
    would kill all that is in the group.
    """
    tree = next((tree for tree in cgroups.trees() if isinstance(tree, cgroups.Tree)), None)
    if tree is None:
        pytest.skip("no tree of control groups here")
    group, inside = tree.path / f"dbcluster-{RUN_ID}-1-1", sleeping("of no run")
    groups.fill(group, inside.pid)
    assert cgroups.members(group) == [inside.pid]
    yield group, inside
    cgroups.remove(group)


def test_down_all_of_root_ends_no_process_that_another_users_files_name(shared, sleeping, named, tmp_path, capfd):
    """Mallory's run has the id of a run of root, and her ``groups`` name a group of root."""
    victim, (group, inside) = sleeping(RUN_ID), named
    commands = [{"argv": ["touch", str(tmp_path / "made")], "environment": {}}]
    directory = make(shared, RUN_ID, MALLORY, {"groups": f"{group}\n", cleanup.FILE: commands})
    assert main.main(["down", "--all"]) == 0
    left = capfd.readouterr().err
    assert main.main(["down", RUN_ID]) == 0

    assert (victim.poll(), inside.poll()) == (None, None)
    assert group.exists()
    assert not (tmp_path / "made").exists()
    command = f"as {MALLORY}: DBCLUSTER_DATA_DIR={shared} dbcluster down {RUN_ID}"
    assert left.count("\n") == 1
    assert missing(left, f"left run {RUN_ID}", f"belongs to {MALLORY}; {command}\n") == []
    assert directory.exists()


def test_a_program_of_another_user_with_our_mark_is_left_alone(shared, sleeping):
    """Mallory gives it the id of root's run: neither the end of the run nor its supervisor signals it."""
    theirs, ours = sleeping("feedbeef", MALLORY), sleeping("feedbeef")
    make(shared, "feedbeef", 0)
    (run,) = runs.list_runs()

    assert [process.pid for process in run.processes()] == [ours.pid]
    assert supervisor.kill_marked("feedbeef") == 1
    assert ours.wait(20) == -signal.SIGKILL
    assert runs.end(run) == 0
    assert theirs.poll() is None
    assert not run.directory.exists()


def test_root_ends_the_run_of_another_user_by_its_id(shared, sleeping, capsys):
    """Her processes and her directory go; without clean-up commands nothing is left."""
    hers, ours = sleeping("feedcafe", ALICE), sleeping("feedcafe")
    directory = make(shared, "feedcafe", ALICE)

    assert main.main(["down", "feedcafe"]) == 0
    assert capsys.readouterr() == ("ended run feedcafe (1 process)\n", "")
    assert not psutil.pid_exists(hers.pid)
    assert ours.poll() is None
    assert not directory.exists()


def test_what_only_its_user_cleans_up_is_said(shared, sleeping, tmp_path, capsys):
    """Root runs no command that another user wrote: her record stays, and the message has the command for her."""
    hers = sleeping("feedcafe", ALICE)
    files = {cleanup.FILE: [{"argv": ["touch", str(shared / "cleaned")], "environment": {}}]}
    directory = make(shared, "feedcafe", ALICE, files)
    assert main.main(["down", "feedcafe"]) == 0
    told = capsys.readouterr()
    assert not psutil.pid_exists(hers.pid)
    assert not (shared / "cleaned").exists()

    assert told.out == "ended run feedcafe (1 process)\n"
    command = f"DBCLUSTER_DATA_DIR={shared} dbcluster down feedcafe"
    assert told.err.count("\n") == 1
    remains = ("run feedcafe is not cleaned up", "containers and networks", f"{directory} are left")
    assert missing(told.err, *remains, f"Only {ALICE} runs", "cleanup.json", f"as {ALICE}: {command}\n") == []
    program = "import sys; from pytest_dbcluster.cli import main; sys.exit(main.main(['down', 'feedcafe']))"
    assert users.run(ALICE, program, loads=users.CLI, DBCLUSTER_DATA_DIR=str(shared), HOME=str(tmp_path)) == (
        "ended run feedcafe (0 processes)\n"
    )
    assert (shared / "cleaned").stat().st_uid == ALICE
    assert not directory.exists()


def test_reap_names_the_dead_runs_of_others(shared, capsys):
    """Their users reap them; root's own are reaped."""
    hers, ours = make(shared, "feedcafe", ALICE, kept=False), make(shared, "feedbeef", 0, kept=False)

    assert main.main(["reap"]) == 0
    told = capsys.readouterr()
    assert f"ended dead run feedbeef of process {DEAD} (0 processes)" in told.out
    command = f"as {ALICE}: DBCLUSTER_DATA_DIR={shared} dbcluster reap"
    assert told.err.count("\n") == 1
    assert missing(told.err, "left dead run feedcafe", f"belongs to {ALICE}; {command}\n") == []
    assert (hers.exists(), ours.exists()) == (True, False)


def test_an_ordinary_user_is_told_whose_run_it_is(shared, tmp_path):
    """She cannot end it, so nothing is tried."""
    make(shared, "feedbeef", ALICE)
    program = "import sys; from pytest_dbcluster.cli import main; print(main.main(['down', 'feedbeef']))"
    program = f"import sys; sys.stderr = sys.stdout\n{program}"

    said = users.run(MALLORY, program, loads=users.CLI, DBCLUSTER_DATA_DIR=str(shared), HOME=str(tmp_path))
    # The directory is alice's alone, so mallory does not even see that it is a run.
    assert said.count("\n") == 2
    assert missing(said, "dbcluster: no run has", "'feedbeef'", "known: none\n2\n") == []
    (shared / "feedbeef").chmod(0o755)
    said = users.run(MALLORY, program, loads=users.CLI, DBCLUSTER_DATA_DIR=str(shared), HOME=str(tmp_path))
    command = f"as {ALICE}: DBCLUSTER_DATA_DIR={shared} dbcluster down feedbeef"
    assert said.count("\n") == 2
    assert missing(said, f"dbcluster: run feedbeef belongs to {ALICE}", "as root", f"{command}\n2\n") == []


def test_a_name_chooses_among_ones_own_clusters(shared, capsys):
    """Mallory gives her cluster the name of root's: root ends his own, and may take the name."""
    hers = make(shared, "feedcafe", MALLORY, {kept.FILE: cluster("mine")})
    up.free_name("mine")
    assert main.main(["down", "mine"]) == 2
    assert f"known: feedcafe 'mine' of {MALLORY}\n" in capsys.readouterr().err
    ours = make(shared, "feedbeef", 0, {kept.FILE: cluster("mine")})

    assert main.main(["down", "mine"]) == 0
    assert (hers.exists(), ours.exists()) == (True, False)


ODD = [
    *("[]", "7", "null", '"x"', "", "{}", "[" * 100_000, '{"owner": 1', "\x00", "\ud800"),
    *({"owner": value} for value in ("x", [], -1, 0, 10**30, 2**63, True, 1.5, None)),
    *({"born": value} for value in ("x", float("nan"), float("inf"), -1, 10**400, [])),
    *({"began": value} for value in ("x", float("nan"), -1e300, 1e300, {})),
    *({"kept": value} for value in ("yes", 1, [], None)),
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_record_of_another_shape_is_no_run(data, odd, capsys):
    """Whoever wrote it: ps, reap, down and a new run go on."""
    (data / RUN_ID).mkdir(parents=True)
    text = odd if isinstance(odd, str) else json.dumps({**RECORD, "kept": False, **odd})
    (data / RUN_ID / runs.FILE).write_bytes(text.encode(errors="surrogatepass"))

    assert main.main(["ps"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert main.main(["reap"]) == 0
    assert main.main(["down", "--all"]) == 0
    assert (data / RUN_ID).exists()


@pytest.mark.parametrize("odd", ["[7]", "[{}]", "{}", "7", '[{"name": []}]', "[" * 100_000])
def test_a_record_of_clusters_of_another_shape_is_none(data, odd):
    """The run is listed without them."""
    (data / RUN_ID).mkdir(parents=True)
    (data / RUN_ID / runs.FILE).write_text(json.dumps(RECORD))
    (data / RUN_ID / kept.FILE).write_text(odd)
    (data / RUN_ID / cgroups.RECORD).write_text(odd)
    (data / RUN_ID / cleanup.FILE).write_text(odd)

    assert [row.name for row in clusters.rows()] == ["-"]
    (run,) = runs.list_runs()
    assert runs.end(run) == 0
    assert not run.directory.exists()


@pytest.mark.parametrize("what", ["directory", "file", "writable directory", "writable file", "link", "second name"])
def test_a_record_that_somebody_else_may_have_written_is_no_run(shared, what):
    """Root's file in mallory's directory, mallory's file in root's, and what all may write to."""
    directory = make(shared, RUN_ID, 0)
    file = directory / runs.FILE
    assert [run.uid for run in runs.list_runs()] == [0]
    if what.endswith("directory"):
        os.chown(directory, MALLORY, MALLORY) if what == "directory" else directory.chmod(0o777)
    elif what == "link":
        file.rename(directory / "other")
        file.symlink_to("other")
    elif what == "second name":
        os.link(file, directory / "other")
    else:
        os.chown(file, MALLORY, MALLORY) if what == "file" else file.chmod(0o666)

    assert runs.list_runs() == []


def test_a_link_is_no_run(shared, tmp_path):
    """It could lead to a directory of somebody else."""
    make(tmp_path, RUN_ID, 0)
    (shared / "feedbeef").symlink_to(tmp_path / RUN_ID)

    assert runs.list_runs() == []


def test_a_directory_that_is_exchanged_meanwhile_stays(shared):
    """It was mallory's when we looked; what lies there now is not hers."""
    make(shared, RUN_ID, MALLORY)
    (run,) = runs.list_runs()
    run.directory.rename(shared / "hers")
    (shared / RUN_ID).mkdir()
    (shared / RUN_ID / "precious").touch()

    runs.end(run)

    assert (shared / RUN_ID / "precious").exists()


def test_texts_of_others_do_not_control_the_terminal(shared, capsys):
    """Names of clusters, directories and runs are shown with their escapes, and a row stays a row."""
    evil = "\x1b[2J\x9b31m\u202etxt\nfeedbeef  forged"
    make(shared, RUN_ID, MALLORY, {kept.FILE: cluster(evil, topology=evil, release=evil)})
    make(shared, "feedcafe", MALLORY, kept=False)
    (shared / "feedcafe" / f"1-{evil}").mkdir()
    make(shared, "\x1b[31m", MALLORY)

    assert main.main(["ps"]) == 0
    assert main.main(["down", "\x1b[1mnone"]) == 2
    told = capsys.readouterr()
    assert told.out.count("\n") == 3
    assert all(letter.isprintable() or letter == "\n" for letter in told.out + told.err)
    assert r"\x1b[2J\x9b31m\u202etxt\nfeedbeef" in told.out
    assert told.err.count("\n") == 1

"""The lock of the machine between users, one of whom means harm. Who tries what stands in each test."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import LockHeld, ProvisionError
from pytest_dbcluster.system import machine_lock, processes
from pytest_dbcluster.system.machine_lock import BUILDING, MEASURING, MachineLock
from tests.support import users
from tests.support.users import ALICE, MALLORY

# Takes a turn in the machine's own directory, says so, and keeps it until its input ends.
TURN = """
import sys
from pytest_dbcluster.system import machine_lock as machine
machine.PARENTS, machine.FIRST_REPORT = (sys.argv[1],), 0.0
with machine.MachineLock().turn(sys.argv[2], run="theirs", progress=lambda line: print(line, flush=True)):
    print("has it", flush=True)
    sys.stdin.read()
"""
# Puts a directory where an older version had its locks, and exchanges it for a link to other files all the time.
SWAP = """
import os, sys
os.chdir(sys.argv[1])
os.mkdir("pytest-dbcluster")
os.chmod("pytest-dbcluster", 0o1777)
os.symlink(sys.argv[2], "link")
print("swaps", flush=True)
while True:
    os.rename("pytest-dbcluster", "mine")
    os.rename("link", "pytest-dbcluster")
    os.rename("pytest-dbcluster", "link")
    os.rename("mine", "pytest-dbcluster")
"""
# Writes a note of its own: its name, its content, and whether it is a link to an existing file.
NOTE = """
import os, sys
name, content, target = sys.argv[1:4]
if target:
    os.symlink(target, name)
else:
    with open(name, "w") as file:
        file.write(content)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def machine(open_to_all, monkeypatch):
    """A machine whose directory for locks is open to all users."""
    monkeypatch.setattr(machine_lock, "PARENTS", ("/no/such/directory", str(open_to_all)))
    return MachineLock()


@pytest.fixture
def begin():
    """``begin(uid, program, ...)``: a program of a user, ended at the latest with the test."""
    with contextlib.ExitStack() as started:

        def begin(uid, program, *words):
            loads = users.SYSTEM if program is TURN else ()
            process = started.enter_context(users.begin(uid, program, *words, loads=loads))
            started.callback(process.kill)
            return process

        yield begin


def said(process):
    """Its next line that is no news of waiting."""
    return next(line.strip() for line in process.stdout if not line.startswith("waiting"))


@pytest.fixture
def victims(tmp_path):
    """Files that only root may touch."""
    made = tmp_path / "victims"
    made.mkdir()
    for number in range(50):
        (made / f"{number}.json").write_text("{}")
    yield made
    assert len(list(made.iterdir())) == 50


def test_locks_lie_directly_in_roots_sticky_directory(machine, open_to_all):
    """No directory of our own, which any user may make first."""
    with machine.turn(MEASURING):
        assert machine.directory == open_to_all
        assert all(path.is_file() and path.name.startswith("pytest-dbcluster-") for path in open_to_all.iterdir())
        assert len(list(open_to_all.iterdir())) == 3


@pytest.mark.parametrize(("owner", "mode"), [(MALLORY, 0o1777), (0, 0o777), (0, 0o755)])
def test_another_directory_is_not_taken(machine, open_to_all, monkeypatch, tmp_path, owner, mode):
    """In one of another user, or in one that is not sticky, everybody's files could be replaced."""
    os.chown(open_to_all, owner, -1)
    open_to_all.chmod(mode)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert machine_lock.lock_directory() == tmp_path / "pytest-dbcluster" / "machine"
    if mode != 0o755:
        with pytest.raises(ProvisionError, match="who could replace our files there"):
            MachineLock(open_to_all).turn(MEASURING).__enter__()


def test_a_directory_that_is_exchanged_for_a_link_leads_nowhere(machine, open_to_all, victims, begin):
    """Mallory makes the directory of the locks first, and exchanges it for a link while root takes turns."""
    swapping = begin(MALLORY, SWAP, open_to_all, victims)
    assert said(swapping) == "swaps"
    limit = time.monotonic() + 2
    while time.monotonic() < limit:
        with contextlib.suppress(ProvisionError), MachineLock().turn(BUILDING):
            machine.holders()
    assert swapping.poll() is None


def dead_name(number=1):
    """The name of a note of a process that has ended."""
    return f"pytest-dbcluster-note-{number:08x}-{2**22 + 1}-1"


def test_notes_of_others_are_not_removed_and_lead_nowhere(machine, open_to_all, victims, begin):
    """Mallory leaves a note of a dead process, and a link with such a name; root removes only his own dead ones."""
    plain, link, own = open_to_all / dead_name(1), open_to_all / dead_name(2), open_to_all / dead_name(3)
    for name, target in ((plain, ""), (link, victims / "1.json")):
        said(begin(MALLORY, NOTE, name, "{}", target))
    own.write_text("{}")

    assert machine.holders() == []
    assert (plain.exists(), link.is_symlink(), own.exists()) == (True, True, False)


def note(pid, **fields):
    """The name and the content of a note of a process."""
    born = f"{psutil.Process(pid).create_time():.0f}"
    content = {"run": "hers", "does": MEASURING, "since": time.time(), "waits": False, **fields}
    return f"pytest-dbcluster-note-0000000a-{pid}-{born}", json.dumps(content)


def test_a_note_for_somebody_elses_process_is_not_believed(machine, open_to_all, begin):
    """Mallory says that a process of root has the machine: root's children would else measure without a turn."""
    name, content = note(os.getppid())
    said(begin(MALLORY, NOTE, open_to_all / name, content, ""))

    assert machine.holders() == []


@pytest.mark.parametrize(
    "fields",
    [{"does": []}, {"since": "x"}, {"since": float("nan")}, {"waits": "no"}, {"run": 7}, {"does": "rm -rf"}],
    ids=str,
)
def test_a_note_of_another_shape_is_none(machine, open_to_all, begin, fields):
    """Mallory's own process writes it; turns go on."""
    writing = begin(MALLORY, "import sys; open(sys.stdin.readline().strip(), 'w').write(input()); input()")
    name, content = note(writing.pid, **fields)
    writing.stdin.write(f"{open_to_all / name}\n{content}\n")
    writing.stdin.flush()
    wait.until(lambda: [] if (open_to_all / name).exists() else ["no note"], "the note", seconds=20)

    with machine.turn(MEASURING):
        assert [holder.pid for holder in machine.holders()] == [os.getpid()]
    for depth in ("[" * 100_000, "{", "\xff", ""):
        (open_to_all / name).write_text(depth)
        assert machine.holders() == []


def test_the_text_of_a_note_does_not_reach_the_terminal(machine, open_to_all, begin):
    """Mallory's run has a name that clears the screen; it is shown, shortened, as what it is."""
    writing = begin(MALLORY, "import sys; open(sys.stdin.readline().strip(), 'w').write(input()); sys.stdin.read()")
    name, content = note(writing.pid, run="\x1b[2J" + "x" * 200)
    writing.stdin.write(f"{open_to_all / name}\n{content}\n")
    writing.stdin.flush()
    wait.until(lambda: [] if machine.holders() else ["no holder"], "the note", seconds=20)

    assert str(machine.holders()[0]).startswith(rf"run \x1b[2J{'x' * 36} of pid {writing.pid} ({MALLORY}) has been")


def test_two_ordinary_users_take_turns(machine, open_to_all, begin):
    """The second one waits for the first, who is named; root takes turns with both."""
    alice = begin(ALICE, TURN, open_to_all, MEASURING)
    assert said(alice) == "has it"
    mallory = begin(MALLORY, TURN, open_to_all, MEASURING)
    assert mallory.stdout.readline().startswith(f"waiting: run theirs of pid {alice.pid} ({ALICE}) has been measuring")
    assert [(one.pid, one.user, one.waits) for one in machine.holders()] != []
    alice.stdin.close()

    assert said(mallory) == "has it"
    with machine.turn(BUILDING, most=0.05):
        assert {(one.pid, one.does) for one in machine.holders()} == {
            (mallory.pid, MEASURING),
            (os.getpid(), BUILDING),
        }


def test_an_existing_lock_file_is_not_created_again(machine, open_to_all, begin, monkeypatch):
    """The kernel refuses that for files of other users in a sticky directory (fs.protected_regular)."""
    alice = begin(ALICE, TURN, open_to_all, BUILDING)
    assert said(alice) == "has it"
    opened = os.open

    def refuse(path, flags, *mode, dir_fd=None):
        if flags & os.O_CREAT and os.access(path, os.F_OK, dir_fd=dir_fd):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, *mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    with machine.turn(BUILDING):
        assert {one.user for one in machine.holders()} == {str(ALICE), processes.user_name(0)}


def test_a_lock_without_a_note_counts_and_its_process_is_named(machine, open_to_all):
    """Mallory only locks the file. The kernel's list has the process id; after ``--db-wait`` nobody waits for her."""
    with machine.turn(BUILDING):
        pass
    words = ["flock", open_to_all / machine_lock.WORK, "sleep", "600"]
    with subprocess.Popen(words, start_new_session=True, user=MALLORY, group=MALLORY, extra_groups=[]) as mallory:
        try:
            here = machine_lock.LockFile(open_to_all, machine_lock.WORK, "no lock")
            wait.until(lambda: [] if here.lockers() else ["no lock"], "the lock", seconds=20)
            (pid,) = here.lockers()

            assert not here.try_lock(fcntl.LOCK_SH)
            assert machine.describe_holders() == f"pid {pid} ({MALLORY}) holds {open_to_all / machine_lock.WORK}"
            with wait.lock_limit(0.05, "--db-wait"), pytest.raises(LockHeld) as caught, machine.turn(BUILDING):
                pytest.fail("it has the machine")
            assert f"pid {pid} ({MALLORY}: flock {open_to_all / machine_lock.WORK} sleep 600, since " in str(
                caught.value
            )
            here.close()
        finally:
            os.killpg(mallory.pid, 9)


PLANTS = {
    "pipe": "os.mkfifo(name)",
    "link": "os.symlink('/etc/passwd', name)",
    "directory": "os.mkdir(name)",
    "second name": "open(name + 'x', 'w').close(); os.link(name + 'x', name)",
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_what_is_no_plain_file_is_not_locked(machine, open_to_all, plant):
    """Mallory puts something else in its place: the error names it and its owner, at once."""
    path = open_to_all / machine_lock.NEXT
    users.run(MALLORY, f"import os, sys; name = sys.argv[1]; {plant}", path)

    with pytest.raises(ProvisionError) as caught:
        machine.turn(MEASURING).__enter__()
    assert str(caught.value).startswith(f"{machine_lock.NO_LOCK}: {path}: ")
    assert str(MALLORY) in str(caught.value)
    assert str(caught.value).endswith(f"remove it: rm {path}")


def test_a_lock_file_that_others_may_not_read_is_named(machine, open_to_all):
    """Mallory made it for herself; alice learns whose it is."""
    users.run(MALLORY, "import os, sys; os.close(os.open(sys.argv[1], os.O_CREAT, 0o600))", open_to_all / "x")
    (open_to_all / "x").rename(open_to_all / machine_lock.WORK)
    program = TURN.replace("with machine", "machine.shared_directory.TRIES = 2\nwith machine")
    with users.begin(ALICE, f"try:\n    exec({program!r})\nexcept Exception as error:\n    print(error)", open_to_all,
                     MEASURING, loads=users.SYSTEM) as alice:  # fmt: skip
        words, _ = alice.communicate(timeout=60)

    path = open_to_all / machine_lock.WORK
    assert f"{path}: Permission denied; it belongs to {MALLORY}; remove it: rm {path}" in words

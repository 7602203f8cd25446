"""One ssh connection with an agent at its other end, to a stand-in with a real ssh server."""

from __future__ import annotations

import itertools
import os
import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.access import BASE, Access
from pytest_dbcluster.hosts.provisioners.ssh.session import MachineBusy, Session, close_all

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def files():
    """A host of this machine, on which ssh runs."""
    run = LocalRun()
    yield run.host("ssh", run.directory / "ssh")
    run.close()


@pytest.fixture
def connect(stand_in, files):
    """``connect()``: a session, closed after the test."""
    made = []

    def connect(*, target="host1", exclusive=False, **access):
        number = next(NUMBERS)
        name = f"abcdabcd-{number}-node1"
        command = remote_programs.session(base=BASE, name=name, owner="tests", mark=name, exclusive=exclusive)
        how = Access(**{"config": stand_in.config, **access})
        made.append(Session(how, target, files, number, name, command))
        return made[-1]

    yield connect
    close_all(made)


@pytest.fixture
def session(connect):
    """One session."""
    return connect()


def directory(stand_in, session):
    """The agent's directory, as this machine sees it."""
    return stand_in["host1"].root / f"var/tmp/pytest-dbcluster-0/{session.name}"


def test_a_script_is_answered_in_the_directory_of_the_agent(session, stand_in):
    """With what it printed, of any length; what it writes there is there."""
    assert session.ask("pwd") == f"/var/tmp/pytest-dbcluster-0/{session.name}\n"
    assert session.ask("echo words >file; cat file") == "words\n"
    assert (directory(stand_in, session) / "file").read_text() == "words\n"
    assert session.ask("head -c 1000000 /dev/zero | tr '\\0' x") == "x" * 1_000_000


def test_a_script_that_fails_says_why(session):
    """With its status, and the name of the machine; after its time it is killed."""
    with pytest.raises(CommandFailed, match=r"on host1 ended with 3: why") as caught:
        session.ask("echo why >&2; exit 3")
    assert caught.value.returncode == 3
    with pytest.raises(CommandFailed, match=r"on host1 did not end within 0\.5 s"):
        session.ask("sleep 77777", seconds=0.5)
    assert session.ask("pgrep -f '^sleep 77777' || echo none") == "none\n"


def test_many_ask_at_the_same_time(session):
    """Each gets its own answer."""
    answers = {}

    def ask(number):
        answers[number] = session.ask(f"echo {number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert answers == {number: f"{number}\n" for number in range(20)}


def test_what_is_piped_has_to_succeed_on_both_sides(session, tmp_path):
    """Data go beside the agent's line, as they are; the side that failed says why."""
    content = os.urandom(500_000)
    (tmp_path / "file").write_bytes(content)
    session.send(f"cat {tmp_path}/file", f"cat >/var/tmp/pytest-dbcluster-0/{session.name}/sent")
    session.receive(f"cat /var/tmp/pytest-dbcluster-0/{session.name}/sent", f"cat >{tmp_path}/back")
    assert (tmp_path / "back").read_bytes() == content

    with pytest.raises(ProvisionError, match="no-such-file"):
        session.send("cat /no-such-file", "cat >/dev/null")
    with pytest.raises(ProvisionError, match="no-such-place"):
        session.send("echo words", "cat >/no-such-place/file")
    with pytest.raises(ProvisionError, match="no-such-file"):
        session.receive("cat /no-such-file", "cat >/dev/null")


def test_a_file_is_pulled_from_any_byte(session):
    """By a path of its own, or in the agent's directory; one that is missing is said to be."""
    session.push(b"0123456789", f"/var/tmp/pytest-dbcluster-0/{session.name}/digits", 0o600)

    assert session.pull("digits") == b"0123456789"
    assert session.pull("digits", 7) == b"789"
    with pytest.raises(FileNotFoundError, match=r"^none on host1$"):
        session.pull("none")


def test_a_file_that_did_not_grow_is_not_read_again(session, monkeypatch):
    """Nor is a program started; what was added is read, also where clocks do not see a difference."""
    scripts, begin = [], session.agent.begin

    def noted(script, *more, **how):
        scripts.append(script)
        return begin(script, *more, **how)

    monkeypatch.setattr(session.agent, "begin", noted)
    path = f"/var/tmp/pytest-dbcluster-0/{session.name}/log"
    session.ask(f"printf 0123 >{path}; touch -d '1 hour ago' {path}")
    assert [session.pull(path, 2), session.pull(path, 4)] == [b"23", b""]
    begun = len(scripts)
    assert session.pull(path, 4) == b""
    assert len(scripts) == begun

    session.ask(f"printf 45 >>{path}; touch -d '2 hours ago' {path}")  # a clock that went back
    assert session.pull(path, 4) == b"45"
    for number in range(6, 12):  # faster than the clock of the file system ticks
        session.ask(f"printf x >>{path}")
        assert session.pull(path, number) == b"x"
    session.ask(f"rm {path}")
    with pytest.raises(FileNotFoundError):
        session.pull(path, 12)


def test_what_cannot_be_read_is_an_error_and_not_empty(session):
    """The message has the machine and its words."""
    with pytest.raises(CommandFailed, match=r"(?s)read /var/tmp.*host1.*Is a directory"):
        session.pull("/var/tmp")


def test_one_way_leads_to_a_port_whoever_asks(session):
    """A second one for the same port would be a second socket."""
    paths = {session.forward("127.0.0.1", 22) for _ in range(3)}

    assert len(paths) == 1
    with session.connect("127.0.0.1", 22, 10) as stream:
        assert stream.recv(100).startswith(b"SSH-2.0-")


def test_a_session_that_is_closed_leaves_nothing(connect, stand_in):
    """Neither its directory nor a program; a second close is no error, and questions are refused with the reason."""
    session = connect()
    session.agent.begin("sleep 88888")
    assert directory(stand_in, session).is_dir()

    session.close()
    session.close()

    assert not directory(stand_in, session).exists()
    assert not [words for words in stand_in["host1"].processes().values() if "88888" in words]
    with pytest.raises(ProvisionError, match=r"^machine host1 was released$"):
        session.ask("true")


def test_a_connection_that_ends_is_named(connect, stand_in):
    """The machine is gone then, for whoever waits; it ends what ran there."""
    session = connect()
    session.agent.begin("sleep 99999")
    wait.until(
        lambda: [] if any("sleep 99999" in w for w in stand_in["host1"].processes().values()) else ["no sleep"],
        "a program", seconds=30,
    )  # fmt: skip
    session._process.signal(9)
    wait.until(lambda: [] if session.agent.gone else ["it is there"], "the end of the connection", seconds=30)

    with pytest.raises(ProvisionError, match=r"^machine host1 cannot be reached any more"):
        session.ask("sleep 60")
    wait.until(
        lambda: [words for words in stand_in["host1"].processes().values() if "99999" in words],
        "the end of the program", seconds=60,
    )  # fmt: skip
    wait.until(lambda: ["it is there"] if directory(stand_in, session).exists() else [], "its removal", seconds=60)


def test_a_machine_with_an_unknown_key_gets_nothing(connect, stand_in, tmp_path):
    """The message has its fingerprint, and says where to compare it and where to put it."""
    (tmp_path / "keys").write_text("")
    with pytest.raises(ProvisionError, match=r"host key, so we sent nothing to it\.") as caught:
        connect(keys=tmp_path / "keys")

    assert stand_in["host1"].fingerprint in str(caught.value)
    assert "--db-host-keys" in str(caught.value)


def test_a_machine_that_is_not_there_is_named_with_what_to_try(connect):
    """With the words of ssh."""
    with pytest.raises(
        ProvisionError, match=r"^cannot use the machine no-such-host\.invalid over ssh: .*check --db-host"
    ):
        connect(target="no-such-host.invalid")


def test_a_machine_that_another_session_has_alone_is_busy(connect):
    """A session that does not want it alone is let in."""
    first = connect(exclusive=True)
    with pytest.raises(MachineBusy, match=r"^another run uses the machine host1$"):
        connect(exclusive=True)
    assert connect().ask("echo in") == "in\n"
    first.close()

    assert connect(exclusive=True).ask("echo in") == "in\n"

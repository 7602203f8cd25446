"""What runs have left on machines is found and ended; what lives, or is not ours, is not touched."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.cli import main
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.leftovers import (
    Leftovers,
    LeftRun,
    parse_answers,
    parse_ended,
    parse_found,
)
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import stand_ins
from tests.support.facts import missing
from tests.support.stand_ins import StandIns

ROOT = Path(__file__).parents[4]
# Marks that no other run of these tests has; this machine sees the programs of stand-in hosts.
DEAD, OTHER = f"0{secrets.token_hex(4)[1:]}-1-node1", f"f{secrets.token_hex(4)[1:]}-2-machine"
SINCE = "2026-11-23T08:00:00+0000"
SECONDS = 15.0
# A controller: a run with a program on each of two machines, until it is killed.
CONTROLLER = """\
import signal, sys
from pathlib import Path
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec

provisioner = SshProvisioner(machines=("host1", "host2"), config=Path(sys.argv[1]))
for host in provisioner.acquire(ClusterSpec("galera", nodes=2)):
    host.spawn(["sleep", "304"], log=f"{host.directory}/log", directory=host.directory)
print(provisioner.run_id, flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two machines. Each test has a directory of its own on them."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(tmp_path_factory.mktemp("client"), 2) as made:
        yield made


@pytest.fixture
def base(hosts, request):
    """A directory of the machines, as --db-host-directory names it. That of root is in it."""
    place = f"/srv/{request.node.name.partition('[')[0]}"
    for host in hosts:
        make(host, f"{place}/pytest-dbcluster-0")
    return place


def make(host, path, **files):
    """A directory of a machine, and these files in it; all belong to its root. Needs no link."""
    place = host.root / path.lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (place / name).write_text(text)
    for one in (place.parent, place, *place.iterdir()):
        os.lchown(one, host.first_id, host.first_id)


def said(host, script):
    """What a script prints on a machine, which ends with 0."""
    done = host.ssh(script)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of(hosts, base, *names):
    """The leftovers of these machines; by default of the first one."""
    return Leftovers(machines=names or ("host1",), config=hosts.config, base=base)


def made(host, base, name, *, owner="somebody@elsewhere", session="1 1"):
    """A host's directory as a session makes it. session: its process and start time."""
    place = f"{base}/pytest-dbcluster-0/{name}"
    make(host, place, owner=f"{name.partition('-')[0]} {owner} {SINCE}\n", session=f"{session}\n")
    return place


def living(host):
    """The process and start time of a program of the machine, as a session records them."""
    return said(host, "setsid sleep 300 >/dev/null 2>&1 & echo $! $(cut -d ' ' -f 22 /proc/$!/stat)").strip()


def listed(host, base):
    """The names in our directory on a machine."""
    return sorted(path.name for path in (host.root / base.lstrip("/") / "pytest-dbcluster-0").iterdir())


def shells(host, run_id):
    """The shells of a run's sessions on a machine, by process id of this machine; needs no link."""
    records = (host.root / "var/tmp/pytest-dbcluster-0").glob(f"{run_id}-*/session")
    inside = {record.read_text().split()[0] for record in records}
    return [pid for pid in host.processes() if inner_id(pid) in inside]


def inner_id(pid):
    """The process id that a process has on its machine; empty in a namespace of its own there."""
    text = Path(f"/proc/{pid}/status").read_text()
    words = next(line.split() for line in text.splitlines() if line.startswith("NSpid:"))
    return words[2] if len(words) == 3 else ""


def running(host):
    """What of a run's programs runs on a machine: the one of the controller, agents and shells."""
    return [words for words in host.processes().values() if re.search("sleep 304|unshare|eval", words)]


def test_an_answer_begins_with_its_token():
    """A login shell may print before it, after it and in the same words; an answer without its end is none."""
    text = "Welcome!\n\nt1 session a\nsession b\n\nt1 programs 4\nt1x end\n\nt1 end\nlogged\n"

    assert parse_answers(text, "t1") == [["session", "a"], ["programs", "4"]]
    assert parse_answers("t1 session a\n", "t1") is None
    assert parse_answers("", "t1") is None


def test_the_sessions_of_a_run_are_one_line():
    """A run lives while one of its sessions does. Sizes add up, and it began with the first one."""
    one = parse_found(
        "m1",
        [
            ["session", "0123abcd-1-machine", "dead", "8", "0", "me@here", "2026-11-23T08:00:05+0000"],
            ["session", "0123abcd-2-node1", "alive", "1024", "3", "me@here", "2026-11-23T08:00:09+0000"],
            ["session", "89abcdef-1-machine", "dead", "0", "0", "-", "-"],
            ["programs", "2048"],
        ],
    )

    assert one.runs == [
        LeftRun("m1", "0123abcd", "me@here", "2026-11-23T08:00:05+0000", alive=True, size=1032 * 1024, processes=3),
        LeftRun("m1", "89abcdef", "-", "-", alive=False, size=0, processes=0),
    ]
    assert one.programs == 2048 * 1024


def test_what_was_ended_is_said_with_its_size():
    """And what stays, with the reason."""
    one = parse_ended(
        "m1",
        [
            ["ended", DEAD, "2048", "1"],
            ["part", OTHER, "10000"],
            ["removed", "141000"],
            ["left", OTHER, "x@\x1by"],
            ["stays", DEAD, "rm:", "no", "way"],
            ["used", "89abcdef"],
        ],
    )

    assert one.machine == "m1"
    ended, transfer, programs = one.done
    assert ended == f"ended {DEAD} (1 process, 2.1 MB)"
    assert missing(transfer, "removed", "unfinished transfer", OTHER, "(10 MB)") == []
    assert missing(programs, "removed", "programs that were sent", "(144 MB)") == []
    alive, stays, used = one.left
    assert missing(alive, f"{OTHER} is alive", "belongs to x@\\x1by", "end it where it started") == []
    assert stays == f"{DEAD} stays: rm: no way"
    assert missing(used, "programs that were sent stay", "a run uses the machine", "try again after its end") == []


@pytest.mark.parametrize("words", [["session", DEAD], ["programs", "many"], ["what"], []])
def test_an_answer_that_is_not_understood_is_an_error(words):
    """It names the machine, and shows the words."""
    with pytest.raises(ProvisionError, match=r"^the machine m1 sent an unknown answer: "):
        parse_found("m1", [words])


def test_a_directory_of_somebody_else_is_named():
    """The machine refuses it in words of its own."""
    with pytest.raises(ProvisionError, match=r"^m1: /var/tmp/x belongs to another user$"):
        parse_ended("m1", [["refused", "/var/tmp/x", "belongs", "to", "another", "user"]])


def test_a_dead_session_is_ended_with_its_programs(hosts, base):
    """Its processes are killed, those of a live run are not, and its directory goes."""
    host = hosts["host1"]
    made(host, base, DEAD)
    made(host, base, OTHER, session=living(host))
    for name in (DEAD, OTHER):
        said(
            host,
            f"DBCLUSTER_HOST={name} setsid sleep 301 >/dev/null 2>&1 </dev/null & "
            f"until grep -sqzxF DBCLUSTER_HOST={name} /proc/$!/environ; do :; done",
        )
    leftovers = of(hosts, base)

    assert [(run.run_id, run.alive, run.processes) for run in leftovers.look()[0].runs] == [
        (DEAD[:8], False, 1),
        (OTHER[:8], True, 1),
    ]
    (done,) = leftovers.reap()

    assert (done.left, leftovers.problems) == ([], {})
    assert [line.partition(" (")[0] for line in done.done] == [f"ended {DEAD}"]
    assert listed(host, base) == [OTHER]
    assert list(host.processes().values()).count("sleep 301") == 1
    assert leftovers.reap()[0].done == []


@pytest.mark.remote
def test_a_session_that_begins_lives(hosts, base):
    """One that has not written its process yet is left alone; after a minute it is dead."""
    host = hosts["host1"]
    place = made(host, base, DEAD)
    said(host, f"rm {place}/session")

    assert [run.alive for run in of(hosts, base).look()[0].runs] == [True]
    assert of(hosts, base).reap()[0].done == []
    said(host, f"touch -d '2 minutes ago' {place}")
    assert len(of(hosts, base).reap()[0].done) == 1
    assert listed(host, base) == []


def test_what_is_not_ours_is_not_touched(hosts, base):
    """Other names, links, directories of another user or of another run's record, and those with no record."""
    host = hosts["host1"]
    said(host, f"cd {base}/pytest-dbcluster-0 && mkdir mine 0123abcd-1-mine outside && ln -s outside 0123abcd-2-link")
    said(host, f"cd {base}/pytest-dbcluster-0 && touch 0123abcd-1-mine/file 0123abcd-3-file outside/kept")
    said(host, f"touch -d '2 minutes ago' {base}/pytest-dbcluster-0/*")
    said(host, f"chown -R plain {made(host, base, '0123abcd-4-theirs')}")
    said(host, f"mv {made(host, base, OTHER)} {base}/pytest-dbcluster-0/0123abcd-5-moved")
    before = said(host, f"cd {base} && find . | sort")

    assert of(hosts, base).look()[0].runs == []
    assert of(hosts, base).reap(programs=True)[0].done == []
    assert said(host, f"cd {base} && find . | sort") == before


def test_no_link_leads_out(hosts, base):
    """Links inside of a session's directory go, and what they name stays; a link as our directory is refused."""
    host = hosts["host1"]
    place = made(host, base, DEAD)
    said(host, f"mkdir {base}/kept && touch {base}/kept/file && ln -s {base}/kept {place}/link")

    assert len(of(hosts, base).reap(programs=True)[0].done) == 1
    assert said(host, f"ls {base}/kept") == "file\n"
    made(host, base, DEAD)
    said(host, f"mv {base}/pytest-dbcluster-0 {base}/real && ln -s real {base}/pytest-dbcluster-0")
    leftovers = of(hosts, base)
    assert leftovers.reap() == []
    assert "belongs to another user, or is not a directory: nothing in it was touched" in leftovers.problems["host1"]
    assert said(host, f"ls {base}/real/{DEAD}/owner")


def test_a_machine_that_runs_never_used_has_nothing(hosts):
    """Nothing is made there either."""
    leftovers = of(hosts, "/srv/never")

    assert [(one.runs, one.programs) for one in leftovers.look()] == [([], 0)]
    assert leftovers.reap(programs=True)[0].done == []
    assert hosts["host1"].ssh("ls /srv/never").returncode != 0


def test_a_run_of_another_controller_is_ended_there(hosts, base):
    """While it lives, it is not ended from here, and its owner is named."""
    host = hosts["host1"]
    made(host, base, DEAD, session=living(host))

    with pytest.raises(
        ConfigError, match=rf"^run {DEAD[:8]} is alive on host1 and belongs to somebody@elsewhere: end it"
    ):
        of(hosts, base).end(DEAD[:8])
    assert listed(host, base) == [DEAD]


def test_a_run_that_is_nowhere_is_unknown(hosts, base):
    """The message lists those that there are; a text that is no id is not sent."""
    made(hosts["host1"], base, DEAD)

    with pytest.raises(ConfigError, match=rf"^no run on these machines has the id '{OTHER[:8]}'; known: {DEAD[:8]}$"):
        of(hosts, base).end(OTHER[:8])
    with pytest.raises(ConfigError, match=r"^'\$\(reboot\)' is not an id of a run"):
        of(hosts, base).end("$(reboot)")


def test_unfinished_transfers_go_with_their_run(hosts, base):
    """Those of a live run stay, and so do complete programs."""
    host = hosts["host1"]
    made(host, base, OTHER, session=living(host))
    programs = f"{base}/pytest-dbcluster-0/programs"
    names = [f"x-1.part-{DEAD}", f"x-1.part-{DEAD}.tree", f"x-1.part-{OTHER}", "x-2", "x-2.part-mine"]
    said(host, "; ".join(f"mkdir -p {programs}/{name}" for name in names))

    (done,) = of(hosts, base).reap()

    assert [line.partition(" (")[0] for line in done.done] == [f"removed an unfinished transfer of {DEAD}"] * 2
    assert sorted(said(host, f"ls {programs}").split()) == sorted(names[2:])


@pytest.mark.remote
def test_programs_are_removed_when_nobody_uses_them(hosts, base):
    """While a run lives they stay, and the exit code of the command says so; without --programs they always do."""
    host = hosts["host1"]
    process = living(host)
    place = made(host, base, OTHER, session=process)
    said(host, f"mkdir -p {base}/pytest-dbcluster-0/programs/x-1")

    assert of(hosts, base).reap(programs=True)[0].left[0].startswith("the programs that were sent stay: a run uses")
    said(host, f"kill {process.split()[0]}; rm -r {place}")
    assert of(hosts, base).reap()[0].done == []
    assert listed(host, base) == ["programs"]
    with_lock = f"touch {base}/pytest-dbcluster.lock; exec 9<{base}/pytest-dbcluster.lock; flock 9; setsid sleep 302"
    said(
        host, f"({with_lock}) >/dev/null 2>&1 </dev/null & while flock -n {base}/pytest-dbcluster.lock true; do :; done"
    )
    assert len(of(hosts, base).reap(programs=True)[0].left) == 1
    for pid, words in host.processes().items():
        if words == "sleep 302":
            os.kill(pid, signal.SIGKILL)
    assert of(hosts, base).reap(programs=True)[0].done[0].startswith("removed the programs that were sent (")
    assert said(host, f"ls {base}") == "pytest-dbcluster.lock\n"


def test_the_own_shell_of_a_live_session_cleans_up(hosts, base):
    """The command down ends a run of this controller on all machines: programs, agents, shells and directories."""
    provisioner = SshProvisioner(machines=("host1", "host2"), config=hosts.config, base=base)
    try:
        for host in provisioner.acquire(ClusterSpec("galera", nodes=2)):
            host.spawn(["sleep", "303"], log=f"{host.directory}/log", directory=host.directory)
        leftovers = of(hosts, base, "host1", "host2")
        runs = [run for one in leftovers.look() for run in one.runs]
        assert [(run.machine, run.run_id, run.owner, run.alive) for run in runs] == [
            (name, provisioner.run_id, remote_programs.user(), True) for name in ("host1", "host2")
        ]
        assert all(one.done == [] for one in leftovers.reap())

        assert [len(one.done) for one in leftovers.end(provisioner.run_id)] == [2, 2]
        for name in ("host1", "host2"):
            assert listed(hosts[name], base) == []
            assert not [words for words in hosts[name].processes().values() if "sleep 303" in words]
    finally:
        provisioner.close()


def test_what_a_killed_shell_left_is_reaped(hosts, base, capsys):
    """The command ps names the dead run, reap ends it; a machine that cannot be reached is named, and the code is 1."""
    provisioner = SshProvisioner(machines=("host1",), config=hosts.config, base=base)
    try:
        provisioner.acquire(ClusterSpec("standalone"))
        said(hosts["host1"], f"for file in {base}/*/*/session; do kill -KILL $(cut -d ' ' -f 1 $file); done")
        machines = ["--provisioner", "ssh", "--db-host", "host1", "--db-ssh-config", str(hosts.config)]
        machines += ["--db-host-directory", base]

        assert main.main(["ps", *machines]) == 0
        line = capsys.readouterr().out.splitlines()[1].split()
        assert line[:3] + line[4:-2] == [
            "host1", provisioner.run_id, remote_programs.user(), "dead:", "dbcluster", "reap",
        ]  # fmt: skip
        assert main.main(["reap", *machines, "--db-host", "nowhere.invalid"]) == 1
        shown = capsys.readouterr()
        assert shown.out.count(f"host1: ended {provisioner.run_id}-") == 2
        assert shown.err.startswith("cannot use the machine nowhere.invalid over ssh: ")
        assert main.main(["reap", *machines]) == 0
        (line,) = capsys.readouterr().out.splitlines()
        assert missing(line, "nothing to remove", "no dead run", "on host1") == []
        assert listed(hosts["host1"], base) == []
    finally:
        provisioner.close()


@pytest.mark.remote
def test_a_run_that_was_killed_behind_a_cut_link_is_reaped(hosts):
    """Its controller is killed and cannot say so, and its shells are killed: all of it goes, on each machine."""
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(hosts.config)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        run_id = controller.stdout.readline().strip()
        for host in hosts:
            host.cut()
    finally:
        controller.kill()
        controller.communicate()
    for host in hosts:
        killed = shells(host, run_id)
        assert len(killed) == 2
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        host.heal()
    leftovers = Leftovers(machines=("host1", "host2"), config=hosts.config)

    assert [(run.run_id, run.alive) for one in leftovers.look() for run in one.runs] == [(run_id, False)] * 2
    assert [len(one.done) for one in leftovers.reap(programs=True)] >= [2, 2]
    assert [one.runs for one in leftovers.look()] == [[], []]
    for host in hosts:
        wait.until(lambda host=host: running(host), f"the end of the run's programs on {host.name}", seconds=SECONDS)
        assert not list((host.root / "var/tmp").glob("pytest-dbcluster-*/*"))

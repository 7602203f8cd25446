"""The command dbcluster: kept clusters that can be used and ended, and one clear sentence for each error."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import cli, housekeeping, kept, runs
from pytest_dbcluster import release as releases
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.provisioners.local import LocalProvisioner
from pytest_dbcluster.release import Known
from pytest_dbcluster.spec import ClusterSpec

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "pytest_dbcluster.cli"]
# A shell lets its background commands ignore Ctrl-C, and what they start inherits that.
UP = """
import signal
from pytest_dbcluster import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
raise SystemExit(cli.main(["up", "galera"]))
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data directory of the test's own; what is left in it at the end is ended."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    yield tmp_path / "runs"
    for run in runs.known():
        runs.end(run)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pytest-dbcluster"


def dbcluster(*words, seconds=60):
    """Run the command as a user does."""
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False)


def left(run_id):
    """The processes that carry a run's id."""
    return runs.Run(Path(run_id), 0, 0.0, kept=True).processes()


def sleeping_run(*, leave):
    """A run of one host, on which a program sleeps."""
    provisioner = LocalProvisioner(keep=leave)
    host = provisioner.acquire(ClusterSpec("standalone", name="asleep"))[0]
    host.spawn(["sleep", "120"], log=f"{host.directory}/log", directory=host.directory)
    if leave:
        provisioner.leave()
        provisioner.close()
    return provisioner


def test_a_galera_cluster_stays_until_it_is_ended(data):
    """The printed commands work as they stand, ps lists the cluster, down leaves nothing of it."""
    up = dbcluster("up", "galera", "--proxy", "haproxy", "--name", "mine", "--option", "max_connections=77")
    assert up.returncode == 0, up.stderr
    run_id = re.search(r"run (\w+)", up.stdout)[1]
    commands = dict(re.findall(r"^  (node\d|writer|reader) +(\S+ --defaults-file=.*)$", up.stdout, re.MULTILINE))
    asked = {
        name: subprocess.run(
            [*shlex.split(command), "-Ne", "SELECT CONCAT(@@wsrep_node_name, ' ', @@max_connections)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for name, command in commands.items()
    }
    client_cnf = data / run_id / "client1.cnf"
    mode = stat.S_IMODE(client_cnf.stat().st_mode)
    password = re.search("password = (.*)", client_cnf.read_text())[1]
    written = (data / run_id / kept.FILE).read_text()
    listed = dbcluster("ps").stdout
    named_again = dbcluster("up", "standalone", "--name", "mine")
    cache_in_use = dbcluster("cache", "clean")
    down = dbcluster("down", "mine")

    assert list(commands) == ["node1", "node2", "node3", "writer", "reader"]
    assert asked == {**{f"node{n}": f"node{n} 77" for n in (1, 2, 3)}, "writer": "node1 77", "reader": asked["reader"]}
    assert password not in up.stdout + up.stderr + written
    assert mode == 0o600
    assert re.search(rf"{run_id} +mine +galera +3 +mariadb:10.11 +\d+ s +\w+ +kept\n", listed)
    assert (named_again.returncode, "a kept cluster is named 'mine' already" in named_again.stderr) == (2, True)
    assert (cache_in_use.returncode, f"in use by run {run_id}" in cache_in_use.stderr) == (2, True)
    assert (down.returncode, down.stdout) == (0, f"ended run {run_id} (5 processes)\n")
    assert not left(run_id)
    assert not (data / run_id).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_up_that_is_interrupted_leaves_nothing(data, number):
    """Ctrl-C while the servers start ends them, as does any other end of the command."""
    up = subprocess.Popen(
        [sys.executable, "-c", UP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    limit = time.monotonic() + 30
    while not (started := [run for run in runs.known() if len(run.processes()) >= 3]) and time.monotonic() < limit:
        time.sleep(0.02)
    up.send_signal(number)
    output, errors = up.communicate(timeout=30)
    while (data / started[0].run_id).exists() and time.monotonic() < limit:
        time.sleep(0.02)

    assert output == ""
    assert not left(started[0].run_id)
    assert not list(data.iterdir())
    if number == signal.SIGINT:
        assert up.returncode == cli.INTERRUPTED
        assert errors.endswith("dbcluster: interrupted\n")


def test_a_server_that_does_not_start_leaves_nothing(data):
    """A value that the server refuses is an error with its own words, and no run stays."""
    up = dbcluster("up", "standalone", "--option", "innodb_data_file_path=nonsense:x")

    assert up.returncode == 1
    assert "Traceback" not in up.stderr
    assert "innodb_data_file_path" in up.stderr
    assert not list(data.iterdir())


def test_what_is_written_is_what_is_read(tmp_path):
    """A kept cluster survives its file; a directory without one tells of none."""
    one = kept.Kept(
        "ab12", "mine", "galera", "mariadb:10.11", "10.11.19", "/bin/mariadb", "/x/client1.cnf", "/x", 1.0,
        (kept.Place("node1", "127.0.0.1", 1234, "/x/log"),), (kept.Place("writer", "127.0.0.1", 1235),), "http://x/",
    )  # fmt: skip
    (tmp_path / kept.FILE).write_text(kept.json.dumps([kept.dataclasses.asdict(one)]))

    assert kept.read(tmp_path) == [one]
    assert kept.read(tmp_path / "nowhere") == []


def test_the_description_can_be_pasted(tmp_path):
    """Paths with blanks are quoted, each place has its line, and the last line ends the cluster."""
    one = kept.Kept(
        "ab12", "mine", "standalone", "mariadb:10.11", "10.11.19", "/my bin/mariadb", "/x/client1.cnf", "/x", 1.0,
        (kept.Place("node1", "127.0.0.1", 1234, "/x/log"),),
    )  # fmt: skip

    assert kept.describe(one).splitlines() == [
        "cluster mine (run ab12): 1 x mariadb:10.11 10.11.19, standalone",
        "  node1    '/my bin/mariadb' --defaults-file=/x/client1.cnf --host=127.0.0.1 --port=1234",
        "logs",
        "  node1    /x/log",
        "end it: dbcluster down ab12",
    ]


def test_a_run_that_is_not_to_be_kept_cannot_be_left(data):
    """Its servers would die with it; the error says what it takes."""
    provisioner = sleeping_run(leave=False)
    try:
        with pytest.raises(ProvisionError, match="only a run that was begun with keep"):
            provisioner.leave()
    finally:
        provisioner.close()


def test_ps_lists_runs_of_others_and_down_does_not_end_them(data, capsys):
    """A run whose owner lives is shown with its process number, and only that process ends it."""
    provisioner = sleeping_run(leave=False)
    try:
        assert cli.main(["ps"]) == 0
        listed = capsys.readouterr().out
        assert cli.main(["down", provisioner.run_id]) == 2
        refused = capsys.readouterr().err
    finally:
        provisioner.close()

    assert re.search(rf"{provisioner.run_id} +asleep +- +- +- +\d+ s +\w+ \(pid {os.getpid()}\) +running", listed)
    assert refused == (
        f"dbcluster: run {provisioner.run_id} belongs to process {os.getpid()}, which still runs: end that process\n"
    )


def test_ps_of_nothing_is_a_head(data, capsys):
    """No run is no error."""
    assert cli.main(["ps"]) == 0
    assert capsys.readouterr().out == "id  name  topology  nodes  release  age  owner  state\n"


def test_down_all_ends_what_was_kept_and_nothing_else(data, capsys):
    """A run that lives is not touched."""
    mine, other = sleeping_run(leave=True), sleeping_run(leave=False)
    try:
        assert cli.main(["down", "--all"]) == 0
        assert capsys.readouterr().out == f"ended run {mine.run_id} (1 processes)\n"
        assert len(left(other.run_id)) == 1
    finally:
        other.close()

    assert not left(mine.run_id)


def test_a_kept_run_whose_servers_ended_says_so(data):
    """After a restart of the machine the directory is still there; ps says that nothing runs, down removes it."""
    provisioner = sleeping_run(leave=True)
    for process in left(provisioner.run_id):
        process.kill()
        psutil.wait_procs([process], timeout=5)

    assert [row.state for row in housekeeping.rows()] == ["kept, its servers have ended"]
    assert housekeeping.down(provisioner.run_id)[1] == 0
    assert not provisioner.directory.exists()


def test_reap_ends_what_a_dead_run_left(data, capsys):
    """A run whose owner is gone and that was not kept is ended and named; a second call has nothing to do."""
    dead = sleeping_run(leave=True)
    file = dead.directory / runs.FILE
    file.write_text('{"owner": 999999999, "born": 1.0, "kept": false, "began": 1.0}')
    shown = [row.state for row in housekeeping.rows()]

    assert shown == ["dead: dbcluster reap"]
    assert cli.main(["reap"]) == 0
    assert capsys.readouterr().out == f"ended dead run {dead.run_id} of process 999999999 (1 processes)\n"
    assert cli.main(["reap"]) == 0
    assert capsys.readouterr().out == "no dead run has left anything\n"


def test_a_process_that_ends_meanwhile_is_no_error(monkeypatch):
    """Processes come and go while those of a run are looked for."""

    class Ending:
        def environ(self):
            return {runs.RUN_VARIABLE: "ab12"}

        def status(self):
            raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(runs.psutil, "process_iter", lambda: [Ending()])

    assert left("ab12") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "galara"], "unknown topology 'galara'; known: "),
        (
            ["up", "galera", "--proxy", "happroxy"],
            "unknown proxy 'happroxy'; known: haproxy, mysql_router; did you mean",
        ),
        (["up", "galera", "--nodes", "0"], "nodes=0 of a galera cluster: a cluster has 1 node or more"),
        (["up", "galera", "--release", "mariadb"], "a release is written NAME:VERSION or NAME:VERSION=DIRECTORY"),
        (["up", "galera", "--release", "mariadb:1.0"], "unknown release mariadb:1.0; known: mariadb:10.5"),
        (["up", "galera", "--option", "x"], "--option takes NAME=VALUE, such as"),
        (["up", "galera", "--option", "=1"], "--option takes NAME=VALUE, such as"),
        (["up", "galera", "--cnf", "/nowhere/my.cnf"], "there is no /nowhere/my.cnf"),
        (["up", "galera", "--option", "innodb_flush_log=2"], "unknown option 'innodb_flush_log' of mariadb:10.11"),
        (["up", "standalone", "--nodes", "2"], "a standalone server is one node, not 2"),
        (["fetch", "mariadb:1.0"], "unknown release mariadb:1.0; known: mariadb:10.5"),
        (["down", "zz"], "no run has the id or name 'zz'; there is: none"),
        (["down"], "dbcluster down takes either the ids or names of clusters, or --all"),
        (["down", "zz", "--all"], "dbcluster down takes either the ids or names of clusters, or --all"),
    ],
)
def test_wrong_input_is_one_sentence_and_2(data, capsys, words, said):
    """The message says what is wrong with it, what there is, and nothing of the program's inside."""
    assert cli.main(words) == 2
    error = capsys.readouterr().err.splitlines()[-1]

    assert error.startswith(f"dbcluster: {said}")
    assert not data.exists() or not list(data.iterdir())


@pytest.mark.parametrize("word", [*cli.PLANNED, "up drbd"])
def test_what_is_planned_says_so(capsys, word):
    """A command or topology that is not built yet is not unknown."""
    assert cli.main(word.split()) == 1
    assert "planned and not built yet" in capsys.readouterr().err


def test_an_error_shows_no_password(monkeypatch, capsys):
    """A password in the words of a server is replaced."""
    from pytest_dbcluster import secrets

    password = secrets.new_password()

    def find(*_, **__):
        raise ProvisionError(f"server said {password}")

    monkeypatch.setattr(releases, "find", find)

    assert cli.main(["fetch", "sysbench"]) == 1
    assert capsys.readouterr().err == "dbcluster: server said ***\n"


def test_fetch_tells_of_each_release(monkeypatch, capsys):
    """One line for each, with the directory that goes into PATH."""

    def find(name, *, progress):
        progress(f"fetching {name}")
        return releases.Release(name, name, "1.2", Path("/bin"), source="here")

    monkeypatch.setattr(releases, "find", find)

    assert cli.main(["fetch", "sysbench", "haproxy"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "sysbench 1.2: /bin (here)\nhaproxy 1.2: /bin (here)\n"
    assert shown.err == "fetching sysbench\nfetching haproxy\n"


def test_releases_is_a_table(monkeypatch, capsys):
    """A row for each release, its size where it is known."""
    rows = [Known("mariadb:10.11", "cached", "10.11.19", 147_000_000, "/x"), Known("mysql:9.7", "planned")]
    monkeypatch.setattr(releases, "known", lambda: rows)

    assert cli.main(["releases"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "release        state    version   size    where",
        "mariadb:10.11  cached   10.11.19  147 MB  /x",
        "mysql:9.7      planned",
    ]


def test_the_cache_is_listed_and_cleaned(data, empty_cache, capsys):
    """What can be made again is listed with its size and removed; runs stay."""
    for place in ("releases/sysbench-amd64", "templates/mariadb-1"):
        (empty_cache / place).mkdir(parents=True)
        (empty_cache / place / "file").write_bytes(bytes(3_000_000))
    (empty_cache / "references").mkdir()
    (empty_cache / "references" / "a.json").write_text("{}")
    assert cli.main(["cache"]) == 0
    listed = capsys.readouterr().out
    assert cli.main(["cache", "clean"]) == 0
    capsys.readouterr()

    assert re.findall(r"^\S+ +\d+ MB", listed, re.MULTILINE) == [
        "releases/sysbench-amd64  3 MB", "templates/mariadb-1      3 MB", "references               0 MB",
    ]  # fmt: skip
    assert f"6 MB in {empty_cache}" in listed
    assert housekeeping.cached() == []


def test_doctor_prints_its_findings(data, capsys):
    """The doctor's text, for people."""
    assert cli.main(["doctor"]) == 0
    assert re.search(r"^fsync +\d+ us", capsys.readouterr().out, re.MULTILINE)


def test_every_command_has_a_help_text():
    """--help lists each command with what it does."""
    text = dbcluster("--help").stdout

    for name in ("releases", "fetch", "up", "ps", "down", "reap", "doctor", "cache", *cli.PLANNED):
        assert re.search(rf"^ +{name} +\w+", text, re.MULTILINE), name


def test_help_loads_no_driver():
    """The command answers at once, because heavy modules are loaded by the commands that need them."""
    script = (
        "import sys, contextlib, pytest_dbcluster.cli as cli\n"
        "with contextlib.suppress(SystemExit): cli.main(['--help'])\n"
        "print(sorted({'mysql', 'psutil', 'pytest', 'filelock'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-3, "0 s"), (42, "42 s"), (420, "7 min"), (5 * 3600, "5 h"), (3 * 86400, "3 d")]
)
def test_a_duration_has_one_unit(seconds, shown):
    """Ages are read at a glance."""
    assert housekeeping.duration(seconds) == shown


def test_a_name_of_two_runs_is_refused(tmp_path):
    """The error lists the ids, of which one is to be chosen."""
    both = []
    for run_id in ("aa", "bb"):
        one = kept.Kept(run_id, "mine", "galera", "m", "1", "c", "f", "d", 1.0, ())
        (tmp_path / run_id).mkdir()
        (tmp_path / run_id / kept.FILE).write_text(kept.json.dumps([kept.dataclasses.asdict(one)]))
        both.append(runs.Run(tmp_path / run_id, 1, 1.0, kept=True))

    with pytest.raises(ConfigError, match="'mine' names 2 runs, say which by its id: aa 'mine', bb 'mine'"):
        kept.chosen("mine", both)
    assert kept.chosen("bb", both).run_id == "bb"

"""The command dbcluster: its tables and helps, and one clear sentence for each error."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys

import psutil
import pytest

import pytest_dbcluster
from pytest_dbcluster import registry, wait
from pytest_dbcluster.cli import main, releases
from pytest_dbcluster.clusters import topology
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import given
from pytest_dbcluster.plugin import command_line
from pytest_dbcluster.releases import find
from pytest_dbcluster.system import machine_lock
from tests.support import golden
from tests.support.command import ROOT


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "galara"], "unknown topology 'galara'; known: "),
        (
            ["up", "galera", "--proxy", "happroxy"],
            "unknown proxy 'happroxy'; known: haproxy, maxscale, mysql_router, proxysql; did you mean",
        ),
        (["up", "galera", "--nodes", "0"], "nodes=0 of a galera cluster: a cluster has 1 node or more"),
        (["up", "galera", "--release", "mariadb"], "a release is written NAME:VERSION or NAME:VERSION=DIRECTORY"),
        (["up", "galera", "--release", "mariadb:12.99"], "unknown release mariadb:12.99; known: mariadb:10.5"),
        (["up", "galera", "--release", "mysql:5.7"], "mysql 5.7 is too old to be measured: "),
        (["up", "galera", "--nodes", "2", "--name", "\n"], "name='\\n' of a galera cluster: a name is one line of"),
        (["up", "async_replication", "--nodes", "1"], "async_replication needs 2 nodes or more, a primary and its"),
        (["up", "galera", "--image", "mariadb:10.11=x"], "an image was given (mariadb:10.11=x), but the provisioner "),
        (["up", "galera", "--rtt", "-1"], "--rtt '-1': it accepts a time in ms, s, min, h or d, such as 5ms"),
        (["up", "galera", "--rtt", "11"], "rtt=11.0 of a cluster's hosts: it accepts seconds, from 0 to 10"),
        (["up", "galera", "--option", "x"], "--option needs NAME=VALUE, such as"),
        (["up", "galera", "--option", "=1"], "--option needs NAME=VALUE, such as"),
        (["up", "galera", "--cnf", "/nowhere/my.cnf"], "there is no /nowhere/my.cnf"),
        (["up", "galera", "--option", "innodb_flush_log=2"], "unknown option 'innodb_flush_log' of mariadb:10.11"),
        (["up", "standalone", "--nodes", "2"], "a standalone server is one node, not 2"),
        (["fetch", "mariadb:12.99"], "unknown release mariadb:12.99; known: mariadb:10.5"),
        (["fetch", "mysql:5.7"], "mysql 5.7 is too old to be measured: the oldest versions are mariadb 10.5 and mysql"),
        (["image", "build", "mariadb"], "a release is written NAME:VERSION or NAME:VERSION=DIRECTORY"),
        (["image", "build", "mariadb:11.8", "mariadb:1.0"], "unknown release 'mariadb:1.0'; known: mariadb:10.5"),
        (["down", "zz"], "no run has the id or name 'zz'; known: none"),
        (["down"], "dbcluster down needs the ids or names of clusters, or --all"),
        (["down", "zz", "--all"], "dbcluster down needs the ids or names of clusters, or --all"),
        (
            ["up", "galera", "--provisioner", "ssh"],
            "up cannot leave a cluster on machines behind ssh",
        ),
        (
            ["compare", "--release=mariadb:10.11", "--release=mariadb:11.8", "--db-host", "a"],
            "machines were given, but the provisioner local does not use them; use --prov",
        ),
        (["up", "galera", "--provisioner", "docker"], "unknown provisioner 'docker'; known: "),
        (
            ["ps", "--db-host", "a"],
            "machines were given, but the provisioner local does not use them; use --provisioner ssh",
        ),
        (["ps", "--provisioner", "ssh"], "--provisioner ssh needs machines: --db-host USER@ADDRESS, once for each"),
        (
            ["reap", "--provisioner", "ssh", "--db-host=-oA=b"],
            "--db-host '-oA=b': it accepts USER@ADDRESS or a Host",
        ),
        (["doctor", "--provisioner", "ssh"], "--provisioner ssh needs machines: --db-host USER@ADDRESS, once for each"),
        (
            ["doctor", "--release", "mysql:8.4", "--provisioner", "ssh", "--db-host", "a"],
            "doctor --release tries a release on this machine; leave out --provisioner ssh",
        ),
        (["doctor", "--release", "mysql:8.2"], "unknown release mysql:8.2; known: mysql:8.0"),
        (["reap", "--programs"], "--programs is about programs on other machines: use --provisioner ssh and "),
        (["down", "--all", "--provisioner", "ssh", "--db-host", "a"], "dbcluster down --provisioner ssh needs the ids"),
        (
            ["down", "$x", "--provisioner", "ssh", "--db-host", "a"],
            "'$x' is not an id of a run; dbcluster ps --prov",
        ),
    ],
)
def test_wrong_input_is_one_sentence_and_2(data, capsys, words, said):
    """The message says what is wrong with it, what there is, and nothing of the program's inside."""
    assert main.main(words) == 2
    error = capsys.readouterr().err.splitlines()[-1]

    assert error.startswith(f"dbcluster: {said}")
    assert not data.exists() or not list(data.iterdir())


def test_what_is_planned_says_so(capsys, monkeypatch):
    """A topology that is not built yet is not unknown."""
    monkeypatch.setattr(topology, "PLANNED", ("ring",))

    assert main.main(["up", "ring"]) == 1
    assert "planned but does not exist yet" in capsys.readouterr().err


def test_an_error_shows_no_password(monkeypatch, capsys):
    """A password in the words of a server is replaced."""
    from pytest_dbcluster import redaction

    password = redaction.new_password()

    def found(*_, **__):
        raise ProvisionError(f"server said {password}")

    monkeypatch.setattr(find, "find", found)

    assert main.main(["fetch", "sysbench"]) == 1
    assert capsys.readouterr().err == "dbcluster: server said ***\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("words", ["up standalone", "compare --release mariadb:10.11 --release mariadb:11.8"])
def test_a_signal_ends_a_command_with_a_sentence(tmp_path, words, number, code):
    """What it had started is gone, and so are the directories that it had made."""
    data, results = tmp_path / "runs", tmp_path / "reports" / "latest"
    more = ["--results", str(results)] if words.startswith("compare") else []
    command = [sys.executable, "-m", "pytest_dbcluster.cli.main", *words.split(), *more]
    process = subprocess.Popen(
        command,
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(data)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509  (nohup ignores it)
    )
    try:
        wait.until(lambda: [] if [*data.glob("*")] else ["no run"], "its run", seconds=300, poll=0.005)
        ids = {f"DBCLUSTER_RUN={path.name}" for path in data.glob("*")}
        process.send_signal(number)
        _, said = process.communicate(timeout=100)
    finally:
        process.kill()

    assert process.returncode == code
    assert said.endswith(f"dbcluster: ended by {number.name}\n")
    assert "Traceback" not in said
    assert [*data.glob("*")] == []
    assert not results.parent.exists()
    for program in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            assert not {f"{name}={value}" for name, value in program.environ().items()} & ids


def test_what_takes_cores_and_the_disk_is_done_in_a_turn(monkeypatch, tmp_path):
    """Nobody measures beside a fetch, an image that is made, and a cluster that comes up."""
    own = machine_lock.MachineLock(tmp_path / "machine")
    monkeypatch.setattr(machine_lock, "this", lambda: own)
    having = []

    def stop(*_, **__):
        having.append([one.does for one in own.holders()])
        raise ProvisionError("far enough")

    monkeypatch.setattr("pytest_dbcluster.cli.up.bring_up", stop)
    assert main.main(["up", "standalone"]) == 1  # its release is in the cache, and takes no turn
    monkeypatch.setattr(find, "find", stop)
    monkeypatch.setattr("pytest_dbcluster.hosts.provisioners.container.images.build", stop)
    monkeypatch.setattr("pytest_dbcluster.hosts.provisioners.container.images.offer", lambda name: name)
    monkeypatch.setattr(releases, "_engine", contextlib.nullcontext)

    for words in (["fetch", "sysbench"], ["image", "build", "mariadb:10.11"]):
        assert main.main(words) == 1
    assert having == [["building"]] * 3


def test_doctor_prints_its_findings(data, capsys):
    """The doctor's text, for people."""
    assert main.main(["doctor"]) == 0
    assert re.search(r"^fsync +\d+ us", capsys.readouterr().out, re.MULTILINE)


def test_the_command_prints_its_version(capsys):
    """It is that of the package."""
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pytest-dbcluster {pytest_dbcluster.__version__}\n"


def test_every_command_has_a_help_text(called):
    """--help lists each command with what it does."""
    text = called("--help").stdout

    for name in (
        "init",
        "releases",
        "fetch",
        "up",
        "ps",
        "down",
        "reap",
        "doctor",
        "cache",
        "image",
        "report",
        "history",
    ):
        assert re.search(rf"^ +{name} +\w+", text, re.MULTILINE), name


@pytest.mark.parametrize("command", ["ps", "down", "reap", "doctor", "compare", "calibrate galera"])
def test_machines_are_named_as_for_a_test_run(command):
    """The options of the provisioner ssh have the names that they have for pytest; so have those that launch."""
    of_pytest = []
    given.add_ssh_options(lambda name, **_: of_pytest.append(name))
    if command.split()[0] in ("doctor", "compare", "calibrate"):
        given.add_ec2_options(lambda name, **_: of_pytest.append(name))
    words = command.split()
    known = vars(main.parser(words).parse_args(words))

    assert {f"--{name.replace('_', '-')}" for name in known if name.startswith("db_")} == set(of_pytest)


def test_up_offers_no_machines_and_no_instances():
    """Its clusters run on this machine, so options for other machines are not offered."""
    known = vars(main.parser(["up"]).parse_args(["up", "galera"]))

    assert [name for name in known if name.startswith("db_")] == []


@pytest.mark.parametrize("command", [name for name, _, _ in main.COMMANDS])
def test_a_help_fits_on_two_screens(command, monkeypatch):
    """A screen has 30 lines of 80 characters; the usage has two lines at most. Commands of a command have helps too."""
    monkeypatch.setenv("COLUMNS", "80")
    for parser in parsers_of(command):
        lines = parser.format_help().splitlines()

        assert len(lines) <= 60
        assert max(map(len, lines)) <= 80
        assert len(list(itertools.takewhile(bool, lines))) <= 2


@pytest.mark.parametrize("command", [name for name, _, _ in main.COMMANDS])
def test_a_help_names_every_option(command):
    """Its text may be brief; the last line then leads to the whole text, and each brief text is shorter."""
    for parser in parsers_of(command):
        shown = parser.format_help()
        texts = [action.help for action in parser._actions if isinstance(action.help, given.HelpText)]
        options = [action for action in parser._actions if action.option_strings]

        assert [one.dest for one in options if one.help == argparse.SUPPRESS] == []
        for one in options:
            assert re.search(rf"^  (-h, )?{one.option_strings[-1]}\b", shown, re.MULTILINE)
        assert [text for text in texts if len(text.brief) >= len(text)] == []
        assert shown.endswith(main.WHOLE) == bool(texts)


def test_the_list_of_commands_fits_into_80_columns():
    """Each command stands in one group, and has one line."""
    text = main.parser([]).format_help()

    assert max(map(len, text.splitlines())) <= 80
    assert re.findall(r"^(\w+):$", text, re.MULTILINE)[1:] == ["measure", "clusters", "machine", "cloud"]
    for name, _, description in main.COMMANDS:
        assert re.search(rf"^  {name} +{re.escape(description)}$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("comapre", "dbcluster: error: unknown command 'comapre'; known: init, compare, "),
        ("comapre --cnf a.cnf", "; did you mean compare?"),
        ("history lsit", "; did you mean list?"),
        ("image buidl", "; did you mean build?"),
        ("ps --provisioner aws", "error: unknown provisioner 'aws'; known: local, ssh, ec2; did you mean ec2?"),
        ("ps --provisioner docker", "error: unknown provisioner 'docker'; known: local, ssh, ec2\n"),
        ("up galera --parity normal", "unknown parity 'normal'; known: vendor, normalised; did you mean normalised?"),
        ("cache claen", "unknown action 'claen'; known: list, clean; did you mean clean?"),
        (
            "compare --relase mariadb:11.8",
            "compare: error: unrecognized arguments: --relase mariadb:11.8; did you mean --release?",
        ),
        ("compare --db-release=mariadb:11.8", "--db-release=mariadb:11.8; did you mean --release?"),
        ("up galera --nothing-like-it", "up: error: unrecognized arguments: --nothing-like-it\n"),
        ("up galera again", "up: error: unrecognized arguments: again\n"),
        ("--hepl", "dbcluster: error: the following arguments are required: COMMAND\n"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(capsys, words, said):
    """Of a command, of an option and of a value: the closest one, if there is one."""
    with pytest.raises(SystemExit) as ended:
        main.main(words.split())
    error = capsys.readouterr().err

    assert ended.value.code == 2
    assert said in error
    assert len(error.splitlines()) == 2  # the usage and the error


def loaded_by(word):
    """The modules that a command loads."""
    script = (
        "import sys, contextlib, pytest_dbcluster.cli.main as cli\n"
        f"with contextlib.suppress(SystemExit): cli.main(['{word}'])\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_only_the_list_of_commands():
    """It answers at once, because a command loads the modules that it needs."""
    found = loaded_by("--help")

    assert {"mysql", "psutil", "pytest", "filelock", "msgspec", "importlib.metadata"} & found == set()
    own = {f"pytest_dbcluster.{name}" for name in ("cli", "cli.main", "version")}
    assert {name for name in found if name.startswith("pytest_dbcluster")} == {"pytest_dbcluster", *own}


def test_a_list_of_runs_loads_nothing_that_starts_or_reaches_clusters(data):
    """Only what reads the records of runs."""
    found = loaded_by("ps")

    assert "pytest_dbcluster.clusters.kept" in found
    rooms = ("clusters.startup", "clusters.topolog", "hosts.provisioner", "hosts.network", "releases", "testbed")
    assert [name for name in found if name.startswith(tuple(f"pytest_dbcluster.{room}" for room in rooms))] == []
    assert {"mysql", "importlib.metadata", "concurrent.futures.thread"} & found == set()


def test_help_tells_a_newcomer_where_to_begin(called):
    """The first steps are commands that exist; every topology and proxy is named by the help of up."""
    text = called("--help").stdout
    assert "dbcluster init my_project" in text
    assert "dbcluster up galera" in text
    assert "pytest --help" in text

    up = called("up", "--help").stdout
    assert [name for kind in ("topology", "proxy") for name in registry.names(kind) if name not in up] == []
    assert "dbcluster down mine" in " ".join(up.split())


def parsers_of(command):
    """The parser of a command, and those of its own commands."""
    made = main.parser([command])._subparsers._group_actions[0].choices[command]
    own = made._subparsers._group_actions[0].choices.values() if made._subparsers else ()
    return [made, *own]


def test_golden_helps(monkeypatch):
    """They are those of the golden file: the list of commands, and the options of each command."""
    monkeypatch.setenv("COLUMNS", "120")
    helps = {"dbcluster": main.parser([]).format_help()}
    helps |= {f"dbcluster {name}": parsers_of(name)[0].format_help() for name, _, _ in main.COMMANDS}
    golden.compare("command_helps", helps)


def test_golden_options_of_a_test_run(monkeypatch):
    """They are those of the golden file."""
    monkeypatch.setenv("COLUMNS", "120")
    parser = argparse.ArgumentParser(prog="pytest", add_help=False)
    command_line.add_options(lambda title: parser.add_argument_group(title).add_argument)
    golden.compare("pytest_options", {"options": parser.format_help()})

"""The options of a run as one checked value; the texts of wrong ones are tested through pytest."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin import settings as module
from pytest_dbcluster.plugin.command_line import add_options
from pytest_dbcluster.plugin.settings import Settings, without_paths
from tests.support.facts import missing

ROOT = Path(__file__).parents[2]


def parser():
    """A parser with the options of a test run."""
    made = argparse.ArgumentParser()
    add_options(lambda title: made.add_argument_group(title).add_argument)
    return made


@pytest.fixture
def read(tmp_path):
    """The settings of a command line."""

    def read(*words):
        return Settings.read(parser().parse_args(words), tmp_path)

    return read


def test_a_run_without_options_has_the_stated_defaults(read, tmp_path):
    """Those of the help texts."""
    found = read()

    assert [str(name) for name in found.releases] == ["mariadb:10.11"]
    assert (found.provisioner, found.profile, found.max_pairs, found.budget) == ("local", "quick", 160, 120.0)
    assert (found.alpha, found.strict, found.keep, found.run_budget) == (0.0005, False, False, None)
    assert found.results == tmp_path / "reports" / "latest"
    assert found.fragments == tmp_path / "fixtures" / "mycnf"


def test_a_seed_is_drawn_unless_it_is_given(read):
    """A given one is kept, and 0 is given."""
    assert read("--db-seed=0").seed == 0
    assert len({read().seed for _ in range(20)}) > 1


def test_releases_are_repeatable(read):
    """In the order in which they were given."""
    found = read("--db-release=mariadb:11.8", "--db-release=mariadb:10.5=/opt/old")

    assert [str(name) for name in found.releases] == ["mariadb:11.8", "mariadb:10.5"]
    assert found.releases[1].directory == "/opt/old"


def test_common_options_are_read_from_their_file(read, tmp_path):
    """Its includes lie below --db-cnf-root; without the option there is no file."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/more.cnf").write_text("[mysqld]\nsync_binlog = 1\n")
    (tmp_path / "site.cnf").write_text("[mysqld]\nmax-connections = 99\n!include /etc/more.cnf\n")

    with_root = read(f"--db-cnf={tmp_path / 'site.cnf'}", f"--db-cnf-root={tmp_path}")
    assert [entry.argument for entry in with_root.below.entries] == ["--max-connections=99", "--sync_binlog=1"]
    assert with_root.cnf_root == tmp_path
    without = read(f"--db-cnf={tmp_path / 'site.cnf'}")
    assert [entry.argument for entry in without.below.entries] == ["--max-connections=99"]
    assert (read().below, read().cnf_root) == (None, None)


def test_rules_are_what_claims_are_drawn_by(read):
    """Seed, alpha, cap and budget."""
    rules = read("--db-seed=3", "--db-alpha=0.0001", "--db-max-pairs=40", "--db-budget=7").rules()

    assert (rules.seed, rules.alpha, rules.cap, rules.budget) == (3, 0.0001, 40, 7.0)
    assert rules.run_over() == ""
    assert rules.fixed_seed


def test_a_run_without_a_seed_draws_64_bits(read):
    """They are not the user's choice, so no message warns of it; a worker gets those of the run."""
    drawn = [read() for _ in range(20)]
    assert not any(found.fixed_seed or found.rules().fixed_seed for found in drawn)
    assert len({found.seed for found in drawn}) == 20
    assert 2**60 < max(found.seed for found in drawn) < 2**64
    of_worker = parser().parse_args(["--db-seed=5"])
    setattr(of_worker, module.DRAWN_SEED, True)
    found = Settings.read(of_worker, Path())
    assert (found.seed, found.fixed_seed) == (5, False)


def test_paper_rounds_have_time_for_a_verdict(read):
    """Eight pairs of rounds of half a minute take eight minutes; what was asked for stays."""
    assert (read().budget, read("--db-profile=paper").budget) == (120.0, 1200.0)
    assert read("--db-profile=paper", "--db-budget=9").budget == 9.0
    assert read("--db-event-budget=10m").rules().event_budget == 600.0
    assert read().event_budget == float("inf")


@pytest.mark.parametrize(
    ("word", "seconds"), [("--db-budget=2m", 120.0), ("--db-budget=90s", 90.0), ("--db-budget=7", 7.0)]
)
def test_a_budget_has_a_unit(read, word, seconds):
    """A number without a unit is in seconds; all options with a time accept the same forms."""
    found = read(word, word.replace("budget", "run-budget"), word.replace("budget", "wait"))

    assert (found.budget, found.run_budget, found.lock_wait) == (seconds, seconds, seconds)


def test_the_runs_budget_ends_when_its_time_is_over(read, monkeypatch):
    """Counted from the beginning of the run."""
    found = read("--db-run-budget=10")
    monkeypatch.setattr(module.time, "monotonic", lambda: found.began + 9.9)
    assert found.rules().run_over() == ""
    monkeypatch.setattr(module.time, "monotonic", lambda: found.began + 10)

    assert missing(found.rules().run_over(), "the run's budget of 10 s", "spent", "(--db-run-budget)") == []


def test_collecting_claims_loads_nothing_that_runs():
    """Servers, their hosts and drivers are for runs: whoever lists tests does not wait for them."""
    program = (
        "import sys, pytest; pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider', 'suites/galera']); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.splitlines()[-1].split())

    assert "pytest_dbcluster.workloads.mysqlslap" in loaded
    assert loaded & {"psutil", "filelock", "mysql", "msgspec"} == set()
    assert (
        loaded & {f"pytest_dbcluster.{name}" for name in ("flavour", "node", "options", "provisioners.local")} == set()
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["suites", "--db-budget", "12", "-k", "flush"], ["--db-budget", "12", "--db-seed=813"]),
        (["--db-budget=12", "suites", "--db-seed", "5"], ["--db-budget=12", "--db-seed", "5"]),
        (["--db-keep", "suites", "--db-strict", "suites"], ["--db-keep", "--db-strict", "--db-seed=813"]),
    ],
)
def test_what_repeats_a_run_are_its_options_with_their_values(read, words, said):
    """Written with = or apart; the seed is added where the run drew it."""
    assert read("--db-seed=813").repeat_options(words) == said


def test_only_flags_stand_alone():
    """Whatever an option takes follows it."""
    actions = [action for action in parser()._actions if action.option_strings[0].startswith("--db-")]

    assert {action.option_strings[0] for action in actions if action.nargs == 0} == set(module.FLAGS)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--db-cnf", "/srv/project/conf/my.cnf"], ["--db-cnf", "conf/my.cnf"]),
        (["--db-cnf=/srv/project/conf/my.cnf"], ["--db-cnf=conf/my.cnf"]),
        (["--db-cnf=../my.cnf"], ["--db-cnf=my.cnf"]),
        (["--db-cnf=/home/somebody/my.cnf"], ["--db-cnf=PATH/my.cnf"]),
        (["--db-cnf-root=/srv/copy", "--db-keep"], ["--db-cnf-root=PATH/copy", "--db-keep"]),
        (["--db-release=mysql:8.4=/opt/mysql-8.4"], ["--db-release=mysql:8.4=PATH/mysql-8.4"]),
        (["--db-release", "mysql:8.4"], ["--db-release", "mysql:8.4"]),
        (["--db-results=/tmp/x", "--db-results", "/tmp/y", "--db-seed=5"], ["--db-seed=5"]),
    ],
)
def test_a_command_for_any_machine_has_no_path_of_this_one(options, shown):
    """A path in the project is relative to it; of any other one the name stays."""
    assert without_paths(options, Path("/srv/project/suites"), Path("/srv/project")) == shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--db-history-strict"], "--db-history-strict needs --db-history FILE, such as --db-history reports/history"),
        (["--db-history= "], "--db-history: it accepts a file, such as reports/history.jsonl"),
        (["--db-results=/r/a", "--db-history=/r/a/history.jsonl"], "--db-history /r/a/history.jsonl: each run removes"),
        (["--db-results=/r/a", "--db-history=/r/a-2/claims.jsonl"], "--db-history /r/a-2/claims.jsonl: each run"),
    ],
)
def test_options_that_make_no_history_are_refused(read, words, said):
    """Before any test runs."""
    with pytest.raises(ConfigError) as caught:
        read(*words)

    assert str(caught.value).startswith(said)


def test_answers_depend_on_the_machines_and_not_on_how_they_are_reached(read, tmp_path):
    """--db-resume takes over what was measured on the same ones."""
    (tmp_path / "config").touch()
    words = ["--db-provisioner=ssh", "--db-host=a", "--db-host=b", "--db-load-host=c"]

    assert read().machines == ()
    assert read(*words).machines == ("--db-host a", "--db-host b", "--db-load-host c")
    assert read(*words, f"--db-ssh-config={tmp_path}/config").machines == read(*words).machines


def test_machines_need_their_provisioner(read):
    """Another one would not use them."""
    with pytest.raises(ConfigError) as caught:
        read("--db-host=a")

    assert missing(caught.value, "machines", "provisioner local does not use", "use --db-provisioner ssh") == []


def test_workers_count_what_they_spend_together(read, tmp_path):
    """The instances of all workers have one ledger, in the directory that they share; other runs need none."""
    words = ["--db-provisioner=ec2", "--db-max-cost=2"]
    alone, workers = read(*words), [read(*words).of_worker(1.0, tmp_path) for _ in range(2)]

    assert alone.elsewhere["settings"].ledger is None
    assert {worker.elsewhere["settings"].ledger for worker in workers} == {tmp_path / "ec2-cost.json"}
    assert [worker.began for worker in workers] == [1.0, 1.0]
    assert dict(read().of_worker(1.0, tmp_path).elsewhere) == {}

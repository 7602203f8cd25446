"""``dbcluster ps``, ``down``, ``reap`` and ``doctor`` with ``--provisioner ec2``."""

from __future__ import annotations

import time

import pytest

from pytest_dbcluster.cli.main import main
from pytest_dbcluster.hosts.provisioners.ec2 import fleet as fleets
from pytest_dbcluster.hosts.provisioners.ec2 import reaper, tags
from tests.hosts.provisioners.ec2.test_fleet import fleet, launched
from tests.support.ec2_accounts import in_environment, stand_in
from tests.support.facts import missing


@pytest.fixture(scope="module")
def account():
    """An account whose instances are names."""
    with stand_in() as made:
        yield made


@pytest.fixture
def aws(account, monkeypatch):
    """The same, empty."""
    monkeypatch.setattr(fleets, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(reaper, "POLL_SECONDS", 0.05)
    account.clear()
    with in_environment(account):
        yield account


def command(capsys, *words):
    """Exit code, output and errors of ``dbcluster WORDS --provisioner ec2``."""
    code = main([*words, "--provisioner", "ec2"])
    return code, *capsys.readouterr()


def test_ps_lists_runs_with_what_they_have(aws, capsys, monkeypatch):
    """Whose they are, whether they live, when they end; and what only looks like ours."""
    launched(fleet(), servers=1, load=False)
    monkeypatch.setattr(tags, "owner", lambda: "eve@elsewhere/1/2")
    launched(fleet("ffffffff"), servers=1, load=False, expires=time.time() - 7200)
    (other,) = [one for one in aws.instances() if one.key_name == "dbcluster-ffffffff"]
    aws.backend.create_tags([other.id], {"Name": "theirs"})
    code, out, err = command(capsys, "ps")
    lines = [line.split() for line in out.splitlines()]

    assert code == 0
    assert lines[0] == ["run", "owner", "state", "ends", "has"]
    (ours,) = [line for line in out.splitlines() if line.startswith("0a1b2c3d")]
    assert "alive" in ours
    assert "in 2 h" in ours
    assert "1 instance, 1 network interface, 2 volumes, 1 security group, 1 placement group, 1 key pair" in ours
    (theirs,) = [line for line in out.splitlines() if line.startswith("ffffffff")]
    assert "eve@elsewhere" in theirs
    assert "expired: dbcluster reap" in theirs
    assert f"instance {other.id} has the tag of run ffffffff, but is not ours: its name is 'theirs'" in err


def test_reap_ends_one_run_or_what_has_expired(aws, capsys):
    """Without either what is expired, and the dead runs of this user."""
    launched(fleet(), servers=1, load=False)
    launched(fleet("ffffffff"), servers=1, load=False, expires=time.time() - 1)

    assert command(capsys, "reap", "--expired")[0] == 0
    assert {one.key_name for one in aws.instances()} == {"dbcluster-0a1b2c3d"}
    code, out, _ = command(capsys, "reap")
    assert (code, out.count("\n"), missing(out, "nothing to remove", "no run")) == (0, 1, [])
    code, out, _ = command(capsys, "reap", "--run", "0a1b2c3d")
    assert code == 0
    assert "removed key pair dbcluster-0a1b2c3d\n" in out
    assert aws.left() == {}


def test_reap_names_runs_that_this_machine_may_have_begun(aws, capsys, monkeypatch):
    """Before its last boot, for example. They cost money until they expire; kept ones are no surprise."""
    monkeypatch.setattr(tags, "owner", lambda: f"{tags.user()}/4711/812/0a1b2c3d-4026531836")
    launched(fleet(), servers=1, load=False)
    monkeypatch.setattr(tags, "owner", lambda: "eve@elsewhere/4711/812/0a1b2c3d-4026531836")
    launched(fleet("ffffffff"), servers=1, load=False)
    code, _, error = command(capsys, "reap")

    assert code == 0
    assert missing(error, "run 0a1b2c3d stays until it expires", "boot", "reap --provisioner ec2 --run 0a1b2c3d") == []
    assert "ffffffff" not in error
    assert len(aws.instances()) == 2


def test_down_ends_runs_by_their_ids(aws, capsys):
    """An unknown one is refused with the known ones, before anything ends."""
    launched(fleet(), servers=1, load=False)

    code, _, error = command(capsys, "down", "absent")
    assert (code, error.count("\n")) == (2, 1)
    assert missing(error, "dbcluster: no run in this account", "'absent'", "known: 0a1b2c3d\n") == []
    assert command(capsys, "down", "0a1b2c3d")[0] == 0
    assert aws.left() == {}


def test_what_is_left_makes_the_exit_code_1(aws, capsys):
    """With the reason."""
    launched(fleet(), servers=1, load=False)
    aws.refuse("DeleteKeyPair", "UnauthorizedOperation", times=-1)
    code, _, err = command(capsys, "reap", "--run", "0a1b2c3d")

    assert code == 1
    assert "left: key pair dbcluster-0a1b2c3d: AWS, ec2:DeleteKeyPair: these credentials do not permit" in err


def test_doctor_fails_where_no_run_could_begin(aws, capsys):
    """Here no price of public addresses is known."""
    code, out, _ = command(capsys, "doctor")

    assert code == 1
    assert "! the price of ipv4" in out
    assert command(capsys, "doctor", "--db-ec2-price", "ipv4=0.005")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reap", "--run", "x"], "--run is about runs in an AWS account: use --provisioner ec2"),
        (["reap", "--expired"], "--expired is about runs in an AWS account: use --provisioner ec2"),
        (["ps", "--region", "eu-west-1"], "--region is about runs in an AWS account: use --provisioner ec2"),
        (["reap", "--provisioner", "ec2", "--run", "x", "--expired"], "dbcluster reap accepts --run ID or --expired"),
        (["down", "--provisioner", "ec2"], "dbcluster down --provisioner ec2 needs the ids of runs"),
        (["down", "--provisioner", "ec2", "--all"], "dbcluster down --provisioner ec2 needs the ids of runs"),
        (
            ["ps", "--provisioner", "ec2", "--db-host", "x"],
            "machines were given, but the provisioner ec2 does not use them",
        ),
        (
            ["up", "galera", "--provisioner", "ec2"],
            "up cannot leave a cluster on machines behind ssh",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys, words, message):
    """Before AWS is asked."""
    assert main(words) == 2
    assert message in " ".join(capsys.readouterr().err.split())

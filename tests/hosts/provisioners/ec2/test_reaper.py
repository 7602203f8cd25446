"""Reaper: what runs have in an account, found and ended by its tags alone."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2 import reaper, tags
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.reaper import Reaper
from pytest_dbcluster.system import processes
from tests.hosts.provisioners.ec2.test_fleet import fleet, launched
from tests.support.facts import missing

OTHER = "ffffffff"


def names(lines):
    """The kinds of things in lines of what was ended."""
    return sorted(re.sub(r" \S+$", "", line) for line in lines)


def ended_process():
    """The id of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_a_run_is_ended_with_everything_that_belongs_to_it(aws):
    """Nothing of it is left, counted; AWS holds some of it until the instances have ended."""
    launched(fleet(spot=True))
    reaped = Reaper(Account()).end("0a1b2c3d")

    assert aws.left() == {}
    assert reaped.left == []
    assert names(reaped.done) == [
        *["ended instance"] * 3,
        *["ended spot request"] * 3,
        "removed key pair",
        "removed placement group",
        "removed security group",
    ]


def test_another_run_is_left_alone(aws):
    """It has another id."""
    for run in (fleet(), fleet(OTHER)):
        launched(run, servers=1, load=False)
    before = aws.left()
    Reaper(Account()).end("0a1b2c3d")

    assert before["instances"] == 2
    assert {one.key_name for one in aws.instances()} == {f"dbcluster-{OTHER}"}
    assert aws.left()["keys"] == aws.left()["groups"] == 1


def test_one_launch_of_a_run_is_ended_alone(aws):
    """A launch that failed takes nothing with it that an earlier one has made."""
    run = fleet()
    first = launched(run, servers=1)
    launched(run, servers=2, load=False)
    Reaper(Account()).end("0a1b2c3d", launch="2")

    assert {one.id for one in aws.instances()} == {one.id for one in first}
    assert aws.left()["keys"] == aws.left()["groups"] == 1


def test_what_has_outlived_its_time_is_ended_whose_ever_it_is(aws):
    """And nothing else."""
    launched(fleet(), servers=1, load=False, expires=time.time() - 1)
    launched(fleet(OTHER), servers=1, load=False)
    reaped = Reaper(Account()).end_expired()

    assert {one.key_name for one in aws.instances()} == {f"dbcluster-{OTHER}"}
    assert reaped.left == []


OWNERS = {
    "{user}/{ended}/1/{boot}-{namespace}": True,
    "{user}/{own}/1/{boot}-{namespace}": True,
    "{user}/{own}/{start}/{boot}-{namespace}": False,
    "{user}/{ended}/1/{boot}-1": False,
    "{user}/{ended}/1/0a1b2c3d-{namespace}": False,
    "eve@elsewhere/{ended}/1/{boot}-{namespace}": False,
    "{user}/x/1/{boot}-{namespace}": False,
    "{user}/{ended}/x/{boot}-{namespace}": False,
    "{user}/{ended}/{namespace}": False,
    "{user}": False,
}


def test_a_run_is_dead_when_its_process_here_has_ended(aws, monkeypatch):
    """Of a process on another machine, or in another container, only its time to live is known.

    Two machines of one image may have the same name, and give their processes the same ids.
    """
    facts = {"user": tags.user(), "ended": ended_process(), "own": os.getpid()}
    facts["start"] = processes.start_ticks(os.getpid())
    facts["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    facts["namespace"] = Path("/proc/self/ns/pid").stat().st_ino
    for number, owner in enumerate(OWNERS):
        text = owner.format(**facts)
        monkeypatch.setattr(tags, "owner", lambda text=text: text)
        launched(fleet(f"0000000{number}"), servers=1, load=False)
    Reaper(Account()).dead()

    alive = [f"dbcluster-0000000{number}" for number, dead in enumerate(OWNERS.values()) if not dead]
    assert sorted(one.key_name for one in aws.instances()) == alive
    assert aws.left()["keys"] == aws.left()["groups"] == len(alive)


STRANGE = [
    ("pytest-dbcluster:owner", None, "it has no tag pytest-dbcluster:owner"),
    ("pytest-dbcluster:expires", None, "it has no tag pytest-dbcluster:expires"),
    ("pytest-dbcluster:expires", "soon", "the tag pytest-dbcluster:expires is 'soon'"),
    ("Name", "db-production", "its name is 'db-production', not 'dbcluster-0a1b2c3d'"),
]


def test_what_has_a_tag_of_ours_and_not_the_rest_is_named_and_left_alone(aws, monkeypatch):
    """Somebody has copied the tag, or taken the instance over."""
    ours, *others = launched(fleet(), servers=1 + len(STRANGE), load=False)
    for one, (key, value, _) in zip(others, STRANGE, strict=True):
        aws.backend.delete_tags([one.id], {key: None})
        if value:
            aws.backend.create_tags([one.id], {key: value})
    monkeypatch.setattr(reaper, "SECONDS", 0.5)  # their group is held for good
    reaped = Reaper(Account()).end("0a1b2c3d")

    assert sorted(one.id for one in aws.instances()) == sorted(one.id for one in others)
    assert f"ended instance {ours.id}" in reaped.done
    for one, (*_, why) in zip(others, STRANGE, strict=True):
        assert f"instance {one.id} has the tag of run 0a1b2c3d, but is not ours: {why}" in reaped.left


def test_an_instance_of_others_with_all_of_our_tags_has_another_key(aws):
    """What a launch gives cannot be given later: the key of an instance is that of its birth."""
    launched(fleet(), servers=1, load=False)
    (instance,) = aws.instances()
    instance.key_name = "production"
    (found,) = [one for one in Reaper(Account()).look() if one.kind is reaper.INSTANCES]

    assert missing(found.foreign, "name is 'production'", "not 'dbcluster-0a1b2c3d'") == []


def test_what_aws_does_not_end_is_told_with_the_reason(aws):
    """The rest is ended all the same."""
    launched(fleet(), servers=1, load=False)
    aws.refuse("DeleteSecurityGroup", "UnauthorizedOperation", "You are not authorized.", times=-1)
    reaped = Reaper(Account()).end("0a1b2c3d")

    assert aws.left() == {"groups": 1}
    assert len(reaped.left) == 1
    assert "do not permit ec2:DeleteSecurityGroup" in reaped.left[0]


@pytest.mark.parametrize("code", ["RequestExpired", "AuthFailure"])
def test_credentials_that_are_not_valid_end_the_search_at_once(aws, code):
    """Nobody waits five minutes for them."""
    launched(fleet(), servers=1, load=False)
    aws.refuse("TerminateInstances", code, times=-1)
    began = time.monotonic()
    with pytest.raises(AwsError):
        Reaper(Account()).end("0a1b2c3d")

    assert time.monotonic() - began < 10


def test_a_second_search_finds_nothing(aws):
    """And asks for no end of anything."""
    launched(fleet(), servers=1, load=False)
    Reaper(Account()).end("0a1b2c3d")
    aws.requests.clear()
    again = Reaper(Account()).end("0a1b2c3d")

    assert (again.done, again.left) == ([], [])
    assert not [one for one in aws.requests if "Describe" not in one]


def test_an_id_that_is_none_is_refused(aws):
    """Before AWS is asked."""
    with pytest.raises(ConfigError, match="is not an id of a run; dbcluster ps --provisioner ec2 lists them"):
        Reaper(Account()).end("*")

    assert aws.requests == []

"""What tests of the provisioner ec2 share: an account that is empty, and answers at once."""

from __future__ import annotations

import functools

import botocore.session
import pytest

from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioners.ec2 import fleet, reaper
from pytest_dbcluster.hosts.provisioners.ec2 import provisioner as ec2
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from tests.support import stand_ins
from tests.support.ec2_accounts import in_environment, stand_in


@pytest.fixture(scope="package", autouse=True)
def read_once():
    """All sessions of boto3 share what they read of the services; each would take a tenth of a second to read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        yield


@pytest.fixture
def quick(monkeypatch):
    """Nobody waits between two questions."""
    monkeypatch.setattr(fleet, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(reaper, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(ec2, "POLL_SECONDS", 0.2)


@pytest.fixture
def account(monkeypatch):
    """An account in eu-central-1 whose credentials are no real ones."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    return Account()


@pytest.fixture(scope="package")
def empty_account():
    """An account whose instances are names; it takes a second to make."""
    with stand_in() as made:
        yield made


@pytest.fixture
def aws(quick, empty_account, monkeypatch):
    """An account whose instances are names. The supervisor of a run starts no reaper for them, which takes a second."""
    empty_account.clear()
    clean_up_by = LocalRun.clean_up_by
    monkeypatch.setattr(
        LocalRun, "clean_up_by", lambda run, argv, environment, seconds: clean_up_by(run, ["true"], environment)
    )
    with in_environment(empty_account):
        yield empty_account


@pytest.fixture
def machines(quick):
    """An account whose instances are machines with an ssh server."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with stand_in(hosts=True) as made, in_environment(made):
        yield made
        assert made.troubles == []

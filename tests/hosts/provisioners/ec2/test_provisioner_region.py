"""The region of a run, where only a zone names it: what ends the run later has to look there too."""

from __future__ import annotations

import pytest

from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings


@pytest.mark.parametrize("usual", ["", "us-east-1"])
def test_what_ends_a_killed_run_looks_in_the_region_of_the_zone(monkeypatch, tmp_path, usual):
    """Its region is that of the launch, whether the environment has none or another one."""
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    if usual:
        monkeypatch.setenv("AWS_DEFAULT_REGION", usual)
    provisioner = Ec2Provisioner(settings=EC2Settings.parse(max_cost="1", zones=["eu-central-1a"]))
    given = {}
    monkeypatch.setattr(
        provisioner._run, "clean_up_by", lambda command, environment, seconds: given.update(environment)
    )
    provisioner._clean_up_later(Account("eu-central-1"))
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    assert Account().region == "eu-central-1"

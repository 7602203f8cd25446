"""Published measurements on their own instance types: a documented command for each, with the most that it costs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost, InstanceGroup, usd
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
from pytest_dbcluster.hosts.provisioners.ec2.money.spending import root
from pytest_dbcluster.hosts.provisioners.ec2.plan import USUAL_GIB
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from tests.support.command import ROOT
from tests.support.conftests import PLAIN

PAGE = (ROOT / "docs" / "how-to" / "ec2-with-a-cap.md").read_text()
SECTION = PAGE.split("## Published instance types\n")[1].split("\n## ")[0]
COMMANDS = [shlex.split(line) for line in re.findall(r"^pytest .+$", SECTION, re.MULTILINE)]
ROWS = {row[0].strip("`"): row for row in re.findall(r"^\| (`\S+`) \| `(\S+)` \| (.+) \| (\S+) USD \|", SECTION, re.M)}
REGION = "eu-central-1"


def value(command, option):
    """The value of an option in a command."""
    return command[command.index(option) + 1]


def type_of(command):
    """The instance type of a command."""
    return value(command, "--db-ec2-type")


def published():
    """Instance type of a published measurement -> the name of its file."""
    found = {}
    for path in sorted((ROOT / "fixtures" / "published").glob("*.toml")):
        hardware = tomllib.loads(path.read_text()).get("hardware", "")
        if match := re.match(r"EC2 (\S+)", hardware):
            found[match[1]] = path.stem
    return found


def test_each_published_instance_type_has_a_command():
    """What was published on EC2 can be run on the same type; the table names its source."""
    assert {name: row[1] for name, row in ROWS.items()} == published()
    assert sorted(map(type_of, COMMANDS)) == sorted(published())


@pytest.mark.parametrize("command", COMMANDS, ids=type_of)
def test_the_volume_is_of_the_published_kind(command):
    """As the hardware of the published file says: gp2, or the disk of the instance."""
    name = published()[type_of(command)]
    hardware = tomllib.loads((ROOT / "fixtures" / "published" / f"{name}.toml").read_text())["hardware"]

    assert value(command, "--db-ec2-volume").split(":")[0] in hardware.lower()


@pytest.mark.parametrize("command", COMMANDS, ids=type_of)
def test_the_most_in_the_table_is_that_of_the_package(command, tmp_path, monkeypatch):
    """Three servers and a load host, with their volumes, for the whole time to live; the cap allows it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given = {
        "type": type_of(command),
        "volume": value(command, "--db-ec2-volume"),
        "ttl": value(command, "--db-ec2-ttl"),
    }
    asked = EC2Settings.parse(**given)
    groups = [
        InstanceGroup("servers", asked.type, 3, public=False, volumes=(root(USUAL_GIB), asked.volume), unlimited=False),
        InstanceGroup("load", asked.type, 1, public=False, volumes=(root(USUAL_GIB),), unlimited=False),
    ]
    cost = Cost.of(groups, region=REGION, prices=Prices(), ttl=asked.ttl)

    assert ROWS[asked.type][3] == usd(cost.most)
    assert float(value(command, "--db-max-cost")) > cost.most / 1e6


@pytest.mark.parametrize("command", COMMANDS, ids=type_of)
def test_a_list_of_the_tests_prints_the_most_that_they_cost(command, tmp_path):
    """With --collect-only nothing is launched and AWS is not asked; the published tables belong to the tests."""
    prices = [word for name in ("ipv4", "t3-credits") for word in ("--db-ec2-price", f"{name}=0.01")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "COLUMNS": "1000", "AWS_DEFAULT_REGION": REGION}
    done = subprocess.run(
        [sys.executable, "-m", *command, "--collect-only", *PLAIN, *prices],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    kind = type_of(command)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ec2: ")]
    (expected,) = re.findall(r"expected time: about (\S+ \S+)", done.stdout)

    assert done.returncode == 0, done.stdout + done.stderr
    assert line.startswith(f"ec2: 3 x {kind} (servers), 1 x {kind} (load) in {REGION}; they end themselves after")
    assert re.search(r"; at most \d+\.\d\d USD \(", line)
    assert ROWS[kind][2] == expected

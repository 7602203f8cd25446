"""Runs on instances that are left running: what stays, for how long, what it costs, and how it ends."""

from __future__ import annotations

import re
import shlex
import stat
import subprocess
import time

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.cli.main import main
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.ec2 import user_data
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner
from pytest_dbcluster.hosts.provisioners.ec2.reaper import Reaper
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.resolution import Resolution

RELEASE = ReleaseName("mariadb", "10.11")
ONE = ClusterSpec("standalone", release=RELEASE)
TTL = 3600
EC2 = ("--provisioner", "ec2", "--region", "eu-central-1")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A directory of runs of its own."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def provisioner(machines, data):
    """A run that may be left, and the lines that it has told."""
    settings = EC2Settings.parse(max_cost=5, source="192.0.2.1/32", prices=["ipv4=0.005"], ttl=f"{TTL}s")
    made, lines = Ec2Provisioner(keep=True, settings=settings), []
    made.progress = lines.append
    yield made, lines
    made.close()
    Reaper(Account()).end(made.run_id)


def sleeping(machine):
    """Whether the program of the test runs on a machine."""
    return "sleep 1234" in machine.processes().values()


def begin(host):
    """Start the program of the test."""
    host.spawn(["sleep", "1234"], log=f"{host.directory}/log", directory=host.directory)


def test_what_is_left_runs_on_without_us(machines, provisioner, data, monkeypatch, capsys):
    """No watchdog ends it, nor a reaper, until the command that was told does."""
    monkeypatch.setattr(remote_programs, "BEAT_SECONDS", 1)
    monkeypatch.setattr(remote_programs, "MISSED", 8)
    run, lines = provisioner
    (host,) = run.acquire(ONE)
    begin(host)
    (server,) = [machines.host(one) for one in machines.instances() if one.private_ip == host.address]
    wait.until(lambda: [] if sleeping(server) else ["it does not run"], "a program", seconds=60)
    stay = run.describe_stay()
    run.leave()
    run.close()
    time.sleep(11)  # the watchdog of one that was not told to stay ends it after 8 to 9 s

    assert sleeping(server)
    assert machines.left()["instances"] == 2
    assert stay.ends == pytest.approx(time.time() + TTL, abs=60)
    monkeypatch.setattr("pytest_dbcluster.hosts.provisioners.ec2.reaper.Thing.alive", False)
    assert Reaper(Account()).dead().done == []
    told = "\n".join(lines)
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(stay.ends))
    assert re.search(
        rf"^ec2: the kept instances end themselves at {at}, in \d+ min; to end them earlier: {stay.command}$",
        told,
        re.M,
    )
    assert re.search(r"about 0\.\d\d USD spent so far; the kept instances will cost at most 0\.\d\d", told)
    login = shlex.split(
        re.search(rf"^kept: r6i.large at \S+, privately {host.address}; log in with: (.*)$", told, re.M)[1]
    )
    who = subprocess.run([*login, "id", "-un"], capture_output=True, text=True, check=False, timeout=60)
    assert who.stdout == "root\n", who.stderr
    for name in ("key", "known_hosts", "config"):
        assert stat.S_IMODE((data / run.run_id / "ec2" / name).stat().st_mode) == 0o600
    assert stay.command == shlex.join(["dbcluster", "down", run.run_id, *EC2])
    assert main(shlex.split(stay.command)[1:]) == 0
    assert machines.left() == {}


@pytest.mark.remote
def test_the_end_is_that_of_the_timers(machines, provisioner):
    """An instance says itself how long it lives."""
    run, _ = provisioner
    run.acquire(ONE)
    for one in machines.instances():
        machines.host(one).write(user_data.EXPIRES.lstrip("/"), f"{int(time.time()) + 777}\n")

    assert run.describe_stay().ends == pytest.approx(time.time() + 777, abs=5)


@pytest.mark.remote
def test_without_leave_a_run_ends_as_any_other(machines, provisioner):
    """Such as one whose clusters did not come up."""
    run, lines = provisioner
    run.acquire(ONE)
    run.close()

    assert machines.left() == {}
    assert lines[-1].endswith("USD spent")


@pytest.mark.remote
def test_what_cannot_be_marked_is_told(machines, provisioner):
    """It stays all the same, and the one command that would end it is named."""
    run, lines = provisioner
    run.acquire(ONE)
    machines.refuse("CreateTags", "UnauthorizedOperation")
    run.describe_stay()
    run.leave()
    run.close()

    assert any(
        "cannot mark the instances as kept: " in line and "dbcluster reap --provisioner ec2" in line for line in lines
    )
    assert machines.left()["instances"] == 2


@pytest.mark.remote
def test_the_servers_of_a_cluster_answer_until_it_is_ended(machines, provisioner, data, capsys):
    """By the printed commands as they stand, also through the proxy; ps lists it, a plain down says which is meant."""
    run, lines = provisioner
    spec = ClusterSpec("galera", nodes=2, release=RELEASE, proxy="haproxy")
    variant = Resolution(run, fragments=data, below=None, progress=lines.append).resolve(spec, switched=False)
    cluster = bring_up(variant.to_start(), run, progress=lines.append)
    text = kept.describe(kept.write(cluster, run))
    run.close()
    commands = dict(re.findall(r"^  (node\d|writer|reader) +(ssh .*)$", text, re.MULTILINE))
    asked = {
        name: subprocess.run(
            shlex.split(command.replace("ssh -t", "ssh -T", 1)), input="SELECT @@wsrep_node_name;", capture_output=True,
            text=True, check=False, timeout=60,
        ).stdout.split()[-1:]
        for name, command in commands.items()
    }  # fmt: skip
    (record,) = kept.read(data / run.run_id)

    assert {name: asked[name] for name in ("node1", "node2", "writer")} == {
        "node1": ["node1"], "node2": ["node2"], "writer": ["node1"]
    }  # fmt: skip
    assert asked["reader"] in (["node1"], ["node2"])
    assert record.place == "ec2 eu-central-1"
    assert any("ask a program of this machine which nodes are healthy" in line for line in lines)
    assert not any(cluster.nodes[0].endpoint.password in line for line in (*lines, text))
    assert main(["ps"]) == 0
    assert re.search(rf"{run.run_id} +galera2.* kept, ends in \d+ min\n", capsys.readouterr().out)
    assert main(["down", run.run_id]) == 2
    assert f"run {run.run_id} is kept on other machines (ec2 eu-central-1): {record.end}" in capsys.readouterr().err
    assert main(["down", "--all"]) == 0
    assert f"left run {run.run_id}, which is kept on other machines" in capsys.readouterr().err
    assert main(["ps", *EC2]) == 0
    assert re.search(rf"{run.run_id} .* kept +in \d+ min", capsys.readouterr().out)
    assert main(shlex.split(record.end)[1:]) == 0
    assert f"ended run {run.run_id}: nothing of it remains" in capsys.readouterr().out
    assert machines.left() == {}
    assert runs.list_runs() == []

"""The way of ssh to instances, through a jump host and without."""

from __future__ import annotations

import dataclasses
import subprocess
import time
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2 import provisioner as ec2
from pytest_dbcluster.hosts.provisioners.ec2 import way
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Instance
from pytest_dbcluster.hosts.provisioners.ec2.plan import Subnet
from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

TWO = ClusterSpec("galera", nodes=2, release=ReleaseName("mariadb", "10.11"))
PRIVATE = Subnet("subnet-0a1b2c3d", "vpc-1", "eu-central-1a", "euc1-az1", public=False)
INSTANCE = Instance("i-1", "server", "r6i.large", PRIVATE, "10.0.0.5", "10.0.0.5", {})


@pytest.fixture
def run():
    """``run(jump="bastion")``: a run with these options, which is closed afterwards."""
    made = []

    def run(**options):
        settings = EC2Settings.parse(**{"max_cost": 5, "source": "192.0.2.1/32", "prices": ["ipv4=0.005"], **options})
        made.append(Ec2Provisioner(settings=settings))
        return made[-1]

    yield run
    for one in made:
        one.close()


@pytest.fixture
def jump(machines, monkeypatch):
    """A jump host of the name ``jump``, which the user's files of ssh know."""
    made = machines.jump()
    monkeypatch.setattr(way, "usual", lambda: (str(machines.user_config),))
    return made


def written(tmp_path, jump, machines=("server1",)):
    """The file of ssh for machines at 10.0.0.5 behind a jump host."""
    file = tmp_path / "config"
    file.write_text(way.config(dict.fromkeys(machines, INSTANCE), "dbcluster-1", Path("/keys here"), jump))
    return file


def understood(file, host):
    """What ssh makes of a file for a host: option -> value."""
    done = subprocess.run(["ssh", "-F", str(file), "-G", host], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def test_the_users_files_hold_for_every_host_but_the_instances(tmp_path, monkeypatch):
    """For the jump host and one on the way to it, and ssh asks nobody there; nothing of them reaches an instance."""
    usual = tmp_path / "usual"
    usual.write_text(
        "Host bastion\n HostName 198.51.100.7\n User admin\n ProxyJump outer\n ControlMaster auto\n"
        "Host outer\n HostName 198.51.100.8\nHost *\n Port 2222\n ForwardAgent yes\n"
    )
    monkeypatch.setattr(way, "usual", lambda: (str(usual),))
    file = written(tmp_path, "bastion")
    server, bastion, outer = (understood(file, host) for host in ("server1", "bastion", "outer"))

    assert (server["hostname"], server["port"], server["proxyjump"]) == ("10.0.0.5", "22", "bastion")
    assert (server["identityfile"], server["forwardagent"]) == ("/keys here/key", "no")
    assert (bastion["hostname"], bastion["user"], bastion["port"]) == ("198.51.100.7", "admin", "2222")
    assert bastion["proxyjump"] == "outer"
    assert outer["hostname"] == "198.51.100.8"
    for one in (bastion, outer):
        assert (one["batchmode"], one["connecttimeout"], one["controlmaster"]) == ("yes", "15", "false")
    assert "Include" not in written(tmp_path, "").read_text()


@pytest.mark.remote
def test_instances_without_public_addresses_are_reached_through_the_jump_host(machines, run, jump):
    """And only so: this machine has no way to them. The load host is there too; all of them end with the run."""
    provisioner = run(jump="root@jump", subnets=[machines.private_subnet()])
    hosts = provisioner.acquire(TWO)
    client = provisioner.client(TWO)

    assert [host.run(["hostname"]).stdout for host in hosts] == [
        f"{machines.host(one).name}\n" for one in _of(machines, hosts)
    ]
    assert client.run(["true"]).stdout == ""
    assert all(one.public_ip is None for one in machines.instances())
    assert all(machines.host(one).hidden for one in machines.instances())
    done = subprocess.run(
        ["ssh", "-o", "ConnectTimeout=5", hosts[0].address, "true"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 255
    assert "No route to host" in done.stderr or "timed out" in done.stderr
    provisioner.close()
    assert machines.left() == {}


def _of(machines, hosts):
    by_address = {one.private_ip: one for one in machines.instances()}
    return [by_address[host.address] for host in hosts]


@pytest.mark.parametrize(
    ("usual", "jump", "words"),
    [
        ("", "nobody@127.0.0.1", "Connection refused|Permission denied|Host key verification failed"),
        ("Host bastion\n HostName 192.0.2.250\n", "bastion", "timed out|unreachable|No route"),
        ("", "bastion.invalid", "Could not resolve hostname bastion.invalid"),
    ],
    ids=["refuses", "down", "unknown"],
)
def test_a_jump_host_that_cannot_be_used_launches_nothing(aws, run, tmp_path, monkeypatch, usual, jump, words):
    """It is found out before AWS is asked for anything that costs money, within the time of a connection."""
    (tmp_path / "usual").write_text(usual)
    monkeypatch.setattr(way, "usual", lambda: (str(tmp_path / "usual"),))
    monkeypatch.setitem(way.UNATTENDED, "ConnectTimeout", 2)
    began = time.monotonic()
    with pytest.raises(ProvisionError, match=f"cannot use --db-ec2-jump {jump}, so we launched nothing: .*({words})"):
        run(jump=jump).acquire(TWO)

    assert time.monotonic() - began < 20
    assert aws.left() == {}
    assert "ec2:RunInstances" not in aws.requests


@pytest.mark.remote
def test_a_private_subnet_without_a_jump_host_is_told(machines, run, monkeypatch):
    """After the time in which an instance has answered; nothing is left."""
    monkeypatch.setattr(ec2, "SILENT_SECONDS", 2.0)
    subnet = machines.private_subnet()
    words = rf"no answer from server1 at \S+: .*the subnet {subnet} has no public addresses: name a jump host"
    with pytest.raises(ProvisionError, match=words):
        run(subnets=[subnet]).acquire(TWO)

    assert machines.left() == {}


@pytest.mark.remote
def test_a_jump_host_that_goes_while_instances_boot_is_told(machines, run, jump, monkeypatch):
    """They do not wait for it until their boot would be over."""
    monkeypatch.setattr(ec2, "SILENT_SECONDS", 3.0)
    monkeypatch.setitem(way.UNATTENDED, "ConnectTimeout", 2)
    machines.held = lambda operation: jump.cut() if operation == "RunInstances" else None
    with pytest.raises(ProvisionError, match=r"no answer from server1 .*does root@jump run and reach that"):
        run(jump="root@jump", subnets=[machines.private_subnet()]).acquire(TWO)

    assert machines.left() == {}


@pytest.mark.remote
def test_a_jump_host_that_forwards_nothing_is_told(machines, run, jump):
    """At once: waiting would not help."""
    jump.configure("AllowTcpForwarding no")
    with pytest.raises(ProvisionError, match="--db-ec2-jump root@jump does not forward to"):
        run(jump="root@jump", subnets=[machines.private_subnet()]).acquire(TWO)

    assert machines.left() == {}


@pytest.mark.parametrize(
    ("jump", "public", "words"),
    [
        (
            "admin@bastion",
            False,
            "does admin@bastion run and reach that address, and is it in --db-ec2-from 192.0.2.0/24",
        ),
        ("", True, "is the address of your ssh in 192.0.2.0/24"),
        ("", False, "the subnet subnet-0a1b2c3d has no public addresses"),
    ],
)
def test_what_to_do_about_silence(jump, public, words):
    """It depends on the way."""
    instance = dataclasses.replace(INSTANCE, subnet=dataclasses.replace(PRIVATE, public=public))

    assert words in way.unreachable("server1", instance, jump, "192.0.2.0/24", "timed out")


def test_a_refusal_is_an_answer():
    """An instance that boots refuses; through a jump host the one that does not answer may be the jump host."""
    refused = "ssh: connect to host 10.0.0.5 port 22: Connection refused"

    assert not way.silent(refused, "")
    assert way.silent(refused, "bastion")
    assert not way.silent("channel 0: open failed: connect failed: Connection refused", "bastion")
    assert way.silent("Connection timed out during banner exchange", "bastion")

"""The provisioner ec2: instances that are machines with real ssh servers, and what becomes of them when AWS refuses."""

from __future__ import annotations

import dataclasses
import shlex
import time

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2 import user_data
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner
from pytest_dbcluster.hosts.provisioners.ec2.reaper import Reaper
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.hosts.provisioners.ssh.machine import Facts, Machine
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from tests.support import vendor_layouts
from tests.support.clusters import bring_up

RELEASE = ReleaseName("mariadb", "10.11")
ONE = ClusterSpec("standalone", release=RELEASE)
TWO = ClusterSpec("galera", nodes=2, release=RELEASE)
THREE = ClusterSpec("galera", nodes=3, release=RELEASE)


@pytest.fixture
def run():
    """``run(volume="gp2:100")``: a run with these options, and the lines that it has told; closed afterwards."""
    made = []

    def run(**options):
        settings = EC2Settings.parse(**{"max_cost": 5, "source": "192.0.2.1/32", "prices": ["ipv4=0.005"], **options})
        provisioner = Ec2Provisioner(settings=settings)
        lines = []
        provisioner.progress = lines.append
        made.append(provisioner)
        return provisioner, lines

    yield run
    for one in made:
        one.close()


def test_nothing_is_launched_without_a_cap():
    """It is said before AWS is asked."""
    with pytest.raises(ConfigError, match=r"launches nothing without a maximum cost: --db-max-cost USD"):
        Ec2Provisioner(settings=EC2Settings.parse())


def test_clusters_share_warm_instances(machines, run):
    """Their nodes lie side by side at private addresses, the load has its own; the end of the run ends all of them.

    What a measurement compares is launched at once, also where one node is asked for first: such as for what servers
    are by default.
    """
    provisioner, lines = run()
    provisioner.expect([ONE, TWO])
    provisioner.give_back(provisioner.acquire(ONE))
    first, second, client = provisioner.acquire(TWO), provisioner.acquire(TWO), provisioner.client(TWO)
    instances = {one.private_ip: one for one in machines.instances()}

    assert [sorted(host.machine for host in hosts) for hosts in (first, second)] == [["server1", "server2"]] * 2
    assert client.machine == "load"
    assert len({host.directory for host in (*first, *second, client)}) == 5
    assert [host.address in instances for host in first] == [True, True]
    assert machines.requests.count("ec2:RunInstances") == 2  # servers and load
    assert [line for line in lines if "(servers)" in line] == lines[:1]
    assert first[0].run(["hostname"]).stdout != first[1].run(["hostname"]).stdout
    assert lines[0].startswith(
        "ec2: 2 x r6i.large (servers), 1 x r6i.large (load) in eu-central-1a; they end themselves"
    )
    provisioner.close()
    assert machines.left() == {}
    assert lines[-1].endswith("USD spent")


@pytest.mark.remote
def test_a_larger_cluster_gets_what_is_missing(machines, run):
    """The instances that are there stay."""
    provisioner, lines = run()
    provisioner.acquire(ONE)
    before = {one.id for one in machines.instances()}
    hosts = provisioner.acquire(TWO)

    assert [host.machine for host in hosts] == ["server1", "server2"]
    assert before < {one.id for one in machines.instances()}
    assert [line.partition(";")[0] for line in lines if line.startswith("ec2: ")] == [
        "ec2: 1 x r6i.large (servers), 1 x r6i.large (load) in eu-central-1a",
        "ec2: 1 x r6i.large (servers) in eu-central-1a",
    ]


@pytest.mark.remote
def test_a_machine_with_another_host_key_gets_nothing(machines, run, monkeypatch):
    """Somebody else answers at its address."""
    monkeypatch.setattr("pytest_dbcluster.hosts.provisioners.ec2.provisioner.READY_SECONDS", 3.0)
    provisioner, _ = run()
    born = machines._born

    def with_another_key(instance, asked, together):
        born(instance, asked, together)
        machines.host(instance).change_host_key()

    monkeypatch.setattr(machines, "_born", with_another_key)
    with pytest.raises(ProvisionError, match=r"another host key than the known one|an unknown host key"):
        provisioner.acquire(ONE)

    assert machines.left() == {}


REFUSALS = [
    ("RunInstances", "InsufficientInstanceCapacity", "does not have enough of these instances now"),
    ("RunInstances", "VcpuLimitExceeded", "the account's limit of vCPUs is used"),
    ("RunInstances", "UnauthorizedOperation", "do not permit ec2:RunInstances; `dbcluster ec2 policy` prints"),
    ("RunInstances", "Unsupported", "this zone does not offer it"),
    ("CreatePlacementGroup", "UnauthorizedOperation", "do not permit ec2:CreatePlacementGroup"),
    ("AuthorizeSecurityGroupIngress", "RulesPerSecurityGroupLimitExceeded", "RulesPerSecurityGroupLimitExceeded"),
    ("DescribeInstanceTypes", "InvalidInstanceType", "this region has no such type"),
    ("GetParameter", "ParameterNotFound", "this region has no such public parameter"),
]


@pytest.mark.parametrize(("operation", "code", "words"), REFUSALS)
def test_a_launch_that_aws_refuses_leaves_nothing(aws, run, operation, code, words):
    """The error is a sentence, and nothing more is launched by this run: each test would ask again."""
    provisioner, _ = run()
    aws.refuse(operation, code)
    with pytest.raises(DBClusterError) as caught:
        provisioner.acquire(THREE)

    assert words in str(caught.value)
    assert aws.left() == {}
    runs = aws.requests.count("ec2:RunInstances")
    with pytest.raises(ProvisionError, match="this run launches nothing more after an error: "):
        provisioner.acquire(THREE)
    assert aws.requests.count("ec2:RunInstances") == runs


def test_capacity_for_two_of_three_launches_none(aws, run):
    """Servers and load host are one transaction: what one part got is ended with the other."""
    provisioner, _ = run(load_type="m5.large")
    aws.capacity["m5.large"] = 0
    with pytest.raises(ProvisionError, match="does not have enough of these instances now"):
        provisioner.acquire(THREE)

    assert aws.left() == {}
    assert aws.requests.count("ec2:RunInstances") == 2
    other, _ = run()
    aws.capacity["r6i.large"] = 2
    with pytest.raises(ProvisionError, match="does not have enough"):
        other.acquire(THREE)
    assert aws.left() == {}


def test_a_clock_that_is_ten_minutes_off_is_told(aws, run):
    """By how much; nothing was launched."""
    provisioner, _ = run()
    aws.ahead = 600.0
    aws.refuse("*", "RequestExpired", "Request has expired.", times=-1)
    with pytest.raises(ProvisionError, match="the clock of this machine is 10 min ahead of that of AWS"):
        provisioner.acquire(ONE)

    aws.relent()
    assert aws.left() == {}


def test_a_cap_that_is_too_low_launches_nothing(aws, run):
    """It holds against the whole time to live."""
    provisioner, _ = run(max_cost="0.10")
    with pytest.raises(ConfigError, match=r"--db-max-cost allows 0\.10: use fewer or smaller instances"):
        provisioner.acquire(THREE)

    assert aws.left() == {}
    assert "ec2:ImportKeyPair" not in aws.requests


@pytest.mark.remote
def test_a_spot_instance_that_aws_takes_while_it_boots_is_told(machines, run):
    """With AWS's reason; the others are ended."""
    provisioner, _ = run(spot=True)
    taken = []

    def take(operation):
        running = [one for one in machines.backend.all_instances() if one.state == "running"]
        if operation == "DescribeInstances" and running and not taken:
            taken.append(running[0].id)
            machines.end(running[0], "Server.SpotInstanceTermination")

    machines.held = take
    with pytest.raises(ProvisionError, match=r"AWS interrupted the spot instance \(Server.SpotInstanceTermination\)"):
        provisioner.acquire(TWO)

    assert machines.left() == {}


def test_credentials_that_expire_in_the_run_leave_no_instance(machines, run):
    """Each instance is told over ssh to end itself. Key and groups cost nothing, and the reaper removes them later."""
    provisioner, lines = run()
    provisioner.acquire(ONE)
    machines.refuse("*", "ExpiredToken", "The token has expired.", times=-1)
    provisioner.close()

    assert "the credentials have expired" in "\n".join(lines)
    assert "sent a shutdown over ssh to server1, load" in lines
    assert any(line.startswith("every instance ends itself by ") for line in lines)
    wait.until(lambda: [str(one) for one in machines.instances()], "the end of the instances", seconds=20)
    machines.relent()
    assert machines.left() == {"keys": 1, "groups": 1, "placement groups": 1}
    assert Reaper(Account()).end(provisioner.run_id).left == []
    assert machines.left() == {}


@pytest.mark.remote
def test_nodes_of_unlike_cpus_are_refused(machines, run, monkeypatch):
    """AWS may give both for one type; a difference between variants would be one of hardware."""
    read = Facts.read
    monkeypatch.setattr(
        Facts, "read", lambda text, target, ours: dataclasses.replace(read(text, target, ours), cpu=f"Xeon of {target}")
    )
    provisioner, _ = run()
    words = (
        r"different CPUs \(server1: Xeon of server1; server2: Xeon of server2\), so their figures cannot be compared:"
    )
    with pytest.raises(ProvisionError, match=words):
        provisioner.acquire(TWO)


@pytest.mark.remote
def test_instances_end_themselves_when_the_run_does(machines, run):
    """All launches of a run have the same end: a later one lives for what is left."""
    provisioner, _ = run(ttl="1h")
    provisioner.acquire(ONE)
    time.sleep(1.1)
    provisioner.acquire(TWO)
    ends = {one["value"] for each in machines.instances() for one in each.get_tags() if one["key"].endswith(":expires")}

    assert len(ends) == 1


@pytest.mark.remote
def test_a_spot_notice_ends_what_is_measured(machines, run, monkeypatch):
    """AWS gives it two minutes before; no block is drawn after it, and the reason names the machine."""
    monkeypatch.setattr("pytest_dbcluster.hosts.provisioners.ec2.provisioner.SPOT_SECONDS", 0.0)
    provisioner, lines = run(spot=True)
    provisioner.acquire(TWO)
    before = provisioner.notice()
    second = next(one for one in machines.instances() if one.id == provisioner._instances["server2"].id)
    machines.notice(second)

    words = "AWS interrupts the spot instance of server2: try again later, or leave out --db-ec2-spot"
    assert before == ""
    assert [provisioner.notice(), provisioner.notice()] == [words, words]
    assert lines.count(words) == 1
    provisioner.close()
    assert machines.left() == {}


@pytest.mark.remote
def test_what_was_written_of_data_volumes_is_told(machines, run, monkeypatch):
    """In a line and in the fingerprint. A cluster that needs more room than that gets the whole volume, once."""
    said = f"ready\nwritten {2**30} of {50 * 2**30} in 9"
    monkeypatch.setattr(
        user_data, "wait_command", lambda _: f"echo ready >/dev/null; printf '%s\\n' {shlex.quote(said)}"
    )
    monkeypatch.setattr(user_data, "GROW", 'echo "$1" >>/tmp/grown\n')
    provisioner, lines = run()
    first = provisioner.acquire(ONE)
    before = dict(provisioner.environment)
    monkeypatch.setattr(Machine, "free_bytes", lambda _: 2**29)
    second = provisioner.acquire(ONE)
    provisioner.acquire(ONE)

    assert any(line.startswith("data volumes of server1, load: 1.0 GiB of 50.0 GiB written once") for line in lines), (
        lines
    )
    assert before["data volume server1"] == "1.0 GiB of 50.0 GiB written once before use"
    assert (
        provisioner.environment["data volume server1"] == f"{before['data volume server1']}, and the rest is used too"
    )
    assert second[0].run(["cat", "/tmp/grown"]).stdout == "/var/tmp\n"
    assert first[0].machine == second[0].machine
    assert sum("now fills its volume (" in line for line in lines) == 1


@pytest.mark.remote
def test_a_tarball_runs_on_instances(machines, run, mysql, tmp_path, monkeypatch):
    """They get a copy of it with the libraries that it loads here, and nothing from another place of this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    laid_out = vendor_layouts.mysql_tarball(mysql, tmp_path / f"mysql-{mysql.version}")
    name = ReleaseName("mysql", "9.7", str(vendor_layouts.pack(laid_out, tmp_path / "mysql.tar")))
    provisioner, _ = run()
    release = provisioner.supply(name, print)
    cluster = bring_up(ClusterSpec("async_replication", nodes=2, release=name), release, provisioner, options={})
    ((version, charsets),) = {node.query("SELECT @@version, @@character_sets_dir")[0] for node in cluster.nodes}
    cluster.close()

    assert [host.machine for host in cluster.hosts] == ["server1", "server2"]
    assert version.startswith(mysql.version)
    assert charsets.partition("/portable-")[0].endswith("/programs")

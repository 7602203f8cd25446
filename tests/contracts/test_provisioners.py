"""What holds for every provisioner that exists: hosts in the nodes' order, with files and ports of their own."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.hosts.provisioner import PLANNED, provisioner_class
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.ec2 import fleet, reaper
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from tests.support import engines, guests, stand_ins
from tests.support.ec2_accounts import in_environment, stand_in
from tests.support.facts import missing

NAMES = sorted([*registry.names("provisioner"), *registry.FOR_TESTS["provisioner"]])
# Guests take seconds of CPU time to boot, and the tests of their own room boot them in each check.
SLOW = {"vm": [pytest.mark.thorough]}


SPEC = ClusterSpec("galera", nodes=2, release=ReleaseName("mariadb", "10.11"))
ONE = ClusterSpec("standalone", release=SPEC.release)


@pytest.fixture(scope="module", params=[pytest.param(name, marks=SLOW.get(name, ())) for name in NAMES])
def provisioner(request):
    """Each provisioner, closed after its tests; what it needs is there, or named."""
    told = {}
    if request.param == "container":
        if reason := engines.missing():
            pytest.skip(reason)
        with contextlib.closing(engine.connect()) as reached:
            told = {"chosen": {str(SPEC.release): engines.tiny(reached)}}
    if request.param == "vm" and (reason := guests.missing()):
        pytest.skip(reason)
    if request.param == "ssh":  # its machines serve one provisioner at a time
        yield request.getfixturevalue("machines")
        return
    with contextlib.ExitStack() as stack:
        if request.param == "ec2":
            if reason := stand_ins.missing():
                pytest.skip(reason)
            stack.enter_context(in_environment(stack.enter_context(stand_in(hosts=True))))
            for module in (fleet, reaper):
                stack.enter_context(pytest.MonkeyPatch.context()).setattr(module, "POLL_SECONDS", 0.2)
            told = {"settings": EC2Settings.parse(max_cost=5, source="192.0.2.1/32", prices=["ipv4=0.005"])}
        yield stack.enter_context(contextlib.closing(provisioner_class(request.param)(**told)))


@pytest.fixture(scope="module")
def hosts(provisioner):
    """Two hosts of each provisioner, which tests leave as they found them."""
    return provisioner.acquire(SPEC)


@pytest.fixture(scope="module")
def others(provisioner, hosts):
    """The hosts of a second cluster of the same spec."""
    return provisioner.acquire(SPEC)


def test_a_cluster_gets_one_host_for_each_node(hosts):
    """They come in the order of the nodes, each under a name and a directory of its own."""
    assert [host.name for host in hosts] == ["node1", "node2"]
    assert len({host.directory for host in hosts}) == 2


def test_two_clusters_share_no_directory(hosts, others):
    """A second cluster of the same spec lies beside the first."""
    assert {host.directory for host in hosts} & {host.directory for host in others} == set()


def test_hosts_that_were_given_back_can_be_given_back_again(provisioner, hosts):
    """What is gone already is no error, and other hosts stay."""
    lone = provisioner.acquire(ONE)
    provisioner.give_back(lone)
    provisioner.give_back(lone)

    hosts[0].push(b"there", f"{hosts[0].directory}/file")
    assert hosts[0].pull(f"{hosts[0].directory}/file") == b"there"
    assert [host.why_lost() for host in hosts] == [""] * 2


def test_a_file_is_read_as_it_was_written(hosts):
    """Whole, from an offset, and over an older one."""
    path = f"{hosts[0].directory}/below/some.file"
    hosts[0].push(b"old", path)
    hosts[0].push(b"\x00new\xff", path)

    assert hosts[0].pull(path) == b"\x00new\xff"
    assert hosts[0].pull(path, offset=4) == b"\xff"


def test_a_missing_file_is_said_to_be_missing(hosts):
    """It is no error of a command, so that callers can tell."""
    with pytest.raises(FileNotFoundError):
        hosts[0].pull(f"{hosts[0].directory}/none")


def test_a_tree_is_copied_and_removed(hosts):
    """A copy holds what the source held; removing what is not there is no error."""
    host = hosts[0]
    host.push(b"1", f"{host.directory}/from/a/b")
    host.copy_tree(f"{host.directory}/from", f"{host.directory}/to")
    host.remove_tree(f"{host.directory}/from")
    host.remove_tree(f"{host.directory}/from")

    assert host.pull(f"{host.directory}/to/a/b") == b"1"
    with pytest.raises(FileNotFoundError):
        host.pull(f"{host.directory}/from/a/b")


def test_ports_of_one_address_are_never_given_twice(hosts, others):
    """Hosts that share an address share its ports, those of two clusters too; a host that shares none needs none."""
    sharing = Counter(host.address for host in (*hosts, *others))
    given = [(host, host.port(3306)) for _ in range(5) for host in (*hosts, *others)]
    shared = [(host.address, port) for host, port in given if sharing[host.address] > 1]

    assert len(set(shared)) == len(shared)
    assert {port for host, port in given if sharing[host.address] == 1} <= {3306}


def test_an_unknown_provisioner_lists_the_known_ones():
    """A name that does not exist is answered with all that do."""
    with pytest.raises(ConfigError) as caught:
        provisioner_class("locl")

    known = ", ".join(sorted({*registry.names("provisioner"), *PLANNED}))
    assert missing(caught.value, "unknown provisioner 'locl'", f"known: {known};", "did you mean local?") == []


def test_a_planned_provisioner_says_so():
    """What is planned is not unknown."""
    with pytest.raises(Unsupported) as caught:
        registry.find("provisioner", "moon", planned=["moon"])

    available = ", ".join(registry.names("provisioner"))
    assert missing(caught.value, "provisioner 'moon' is planned", "does not exist yet", f"available: {available}") == []
    assert "unknown" not in str(caught.value)

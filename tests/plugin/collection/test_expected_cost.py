"""The most that a run on instances can cost, before it begins."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster import ClusterSpec, MySQLSlap
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2 import settings as ec2
from pytest_dbcluster.plugin.collection import expected_cost
from pytest_dbcluster.plugin.settings import Settings

GALERA = ClusterSpec("galera", nodes=3)
PRIMARY = ClusterSpec("async_replication", nodes=2)
SLAP = MySQLSlap("write")
# An hour of an instance costs 0.1 USD, and of an address as much.
PRICES = ["r6i.large=0.1", "ipv4=0.1", "gp3=0.000001", "gp3-iops=0.000001"]


def item(*constants, **params):
    """A collected test of a module with these constants."""
    module = types.SimpleNamespace(**{f"C{number}": value for number, value in enumerate(constants)})
    return types.SimpleNamespace(module=module, callspec=types.SimpleNamespace(params=params))


TWO = item(PRIMARY)
THREE = item(SLAP, [GALERA])


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """No prices and no region of the user who runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def settings(pytestconfig, tmp_path):
    """The settings of a run on instances, with these values of options."""
    usual = Settings.read(pytestconfig.option, tmp_path)

    def settings(provisioner="ec2", **values):
        given = {"zones": ["eu-central-1a"], "prices": PRICES, "ttl": "1h", **values}
        elsewhere = {"settings": ec2.EC2Settings.parse(**given)} if provisioner == "ec2" else {}
        return Settings(**{**vars(usual), "provisioner": provisioner, "elsewhere": elsewhere})

    return settings


def test_the_line_has_the_servers_of_the_largest_cluster_and_a_load_host(settings):
    """Three nodes and the load host, with an address for each."""
    (line,) = expected_cost.lines(settings(), [TWO, THREE])

    assert line.startswith("ec2: 3 x r6i.large (servers), 1 x r6i.large (load) in eu-central-1a; they end themselves")
    assert "after 1 h; at most 0.81 USD (4 x r6i.large 0.40, public IPv4 0.40, volumes under 0.01)" in line
    assert expected_cost.lines(settings(), [TWO])[0].startswith("ec2: 2 x r6i.large (servers), 1 x")


def test_behind_a_jump_host_no_address_is_paid_for(settings):
    """Instances of a private subnet have none."""
    (line,) = expected_cost.lines(settings(jump="admin@bastion"), [THREE])

    assert "public IPv4" not in line


def test_each_worker_has_instances_of_its_own(settings, monkeypatch):
    """The line says how often it is to be taken."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    (line,) = expected_cost.lines(settings(), [THREE])

    assert line.endswith("; for each of 2 workers")


def test_another_provisioner_costs_nothing(settings):
    """There is no line, and nothing is refused."""
    assert expected_cost.lines(settings("local"), [THREE]) == []
    expected_cost.refuse(settings("local"), [THREE])


def test_the_specs_of_parameters_count(settings):
    """A test may have its clusters from its parameters alone."""
    (line,) = expected_cost.lines(settings(), [item(spec=GALERA)])

    assert "3 x r6i.large (servers)" in line


def test_clusters_that_are_not_seen_have_no_cost_yet(settings):
    """The line says so, and the launch itself is held below the cap."""
    (line,) = expected_cost.lines(settings(), [item(SLAP, nodes=3)])

    assert "the cost is unknown" in line
    expected_cost.refuse(settings(), [item(SLAP, nodes=3)])


def test_a_cap_is_compared_with_the_smallest_cluster(settings):
    """A module may hold a spec that no test of the run uses; the refusal names what suffices for the largest one."""
    both = item(PRIMARY, GALERA)
    expected_cost.refuse(settings(max_cost="0.32"), [both])
    with pytest.raises(ConfigError, match=r"--db-max-cost allows 0\.29: .* or --db-max-cost 0\.81"):
        expected_cost.refuse(settings(max_cost="0.29"), [both])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"prices": PRICES[:1]}, "the price of ipv4 in eu-central-1"),
        ({"zones": []}, "no region is chosen"),
        ({"type": "r9i.large"}, "the price of r9i.large in eu-central-1"),
    ],
)
def test_the_line_says_why_the_most_is_not_known(settings, values, words):
    """A list of tests is not refused: it says what is missing."""
    (line,) = expected_cost.lines(settings(**values), [THREE])

    assert words in line


def test_a_run_without_a_cap_is_refused(settings):
    """The refusal names the amount that permits it."""
    with pytest.raises(ConfigError, match=r"launches nothing without --db-max-cost.*use --db-max-cost 0\.81"):
        expected_cost.refuse(settings(), [THREE])


def test_a_cap_below_what_is_sure_is_refused(settings):
    """Three servers and a load host cost 0.40 USD without any address: a lower cap cannot suffice."""
    with pytest.raises(ConfigError, match=r"--db-max-cost allows 0\.39: .* or --db-max-cost 0\.81"):
        expected_cost.refuse(settings(max_cost="0.39"), [THREE])


def test_a_cap_that_may_suffice_is_not_refused(settings):
    """Whether there are public addresses is known when AWS is asked, before the launch."""
    expected_cost.refuse(settings(max_cost="0.42"), [THREE])
    expected_cost.refuse(settings(max_cost="0.32"), [TWO])


def test_an_unknown_price_of_the_type_is_refused(settings):
    """No test begins."""
    with pytest.raises(ConfigError, match=r"the price of r9i\.large in eu-central-1 is unknown"):
        expected_cost.refuse(settings(type="r9i.large", max_cost="100"), [THREE])

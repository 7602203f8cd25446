"""Which workloads may be compared, and the lines about variants that a claim's message has."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.clusters.proxies.haproxy.proxy import HAProxy
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.testbed.pool import Running
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support import golden
from tests.support.clusters import variant_of
from tests.support.facts import missing
from tests.support.fakes import Idle
from tests.workloads.sql.directories import directory

GALERA = ClusterSpec("galera", nodes=3)


def test_many_variables_that_differ_are_cut():
    """Twenty of them, and how many more; none is said too."""
    differ = {f"v{number:02}": ("0", "1") for number in range(23)}

    assert comparability.differences_line("a", "b", {}) == "variables that differ (a -> b): none"
    assert comparability.differences_line("a", "b", differ).startswith(
        "variables that differ (a -> b): v00: 0 -> 1, v01: 0 -> 1"
    )
    assert comparability.differences_line("a", "b", differ).endswith(", v19: 0 -> 1, and 3 more")


def test_a_metric_can_be_limited_to_what_all_workloads_have(tmp_path):
    """A claim compares the same transaction, or statement, of both. One that does not know its own leaves all open."""
    both = directory(tmp_path / "shop", {"order.sql": "\n\nINSERT INTO sales (item) VALUES (1);"})
    whole, orders = SQLFiles(both), SQLFiles(both, transactions=["order.sql"])

    assert comparability.parts((whole,)) == ("browse", "order", "browse:2", "order:3")
    assert comparability.parts((whole, orders)) == ("order", "order:3")
    assert comparability.parts((TPCC(), TPCC(threads=9)))[:2] == ("new_order", "payment")
    assert comparability.parts((SysBench("oltp_insert"),)) == ("oltp_insert",)
    assert comparability.parts((whole, Idle())) == ()


def test_files_are_those_of_each_variant(tmp_path):
    """A workload without files has no entry."""
    own = SQLFiles(directory(tmp_path / "shop", {}))

    assert comparability.files(("own", "tpcc"), (own, TPCC())) == {"own": own.files}
    assert sorted(own.files) == ["shop/browse.sql", "shop/schema.sql", "shop/workload.toml"]


def test_options_of_one_proxy_are_compared():
    """Defaults count as values; two proxies, or none, have no common options."""
    behind = ClusterSpec("galera", nodes=3, proxy="haproxy")
    one, other = (
        dataclasses.replace(variant_of(spec, None), proxy_class=HAProxy)
        for spec in (behind, behind.with_proxy_options(fail_back=False, fall=3))
    )
    alone = variant_of(GALERA, None)

    assert comparability.proxy_differences(one, other) == {"haproxy fail_back": ("ON", "OFF")}
    assert comparability.proxy_differences(one, one) == {}
    assert comparability.proxy_differences(one, alone) == comparability.proxy_differences(alone, alone) == {}


def test_the_default_of_a_proxy_option_is_no_other_cluster(mariadb):
    """Variants share a cluster if the proxies behave in the same way."""
    behind = ClusterSpec("galera", nodes=3, proxy="haproxy")
    specs = (behind, behind.with_proxy_options(fall=3, connect_timeout="5.0"), behind.with_proxy_options(fall=2))
    keys = [dataclasses.replace(variant_of(spec, mariadb), proxy_class=HAProxy).cluster_key for spec in specs]

    assert keys[0] == keys[1] != keys[2]


SMALL, LARGE = str(128 * 2**20), str(2**30)


def test_data_that_fits_into_both_buffer_pools_is_said():
    """A claim about the size of the buffer pool then says nothing about a load with more data."""
    line = comparability.data_fits_line({"innodb_buffer_pool_size": (SMALL, LARGE)}, ("galera3", "big"), 2_400_000)

    assert [fact for fact in ("(3 MiB)", "(galera3 128 MiB, big 1024 MiB)") if fact not in line] == []


def test_each_variant_has_the_size_of_its_own_data():
    """A workload that does not know it has no entry."""
    made = comparability.data_texts(("few", "many", "idle"), (TPCC(), TPCC(warehouses=8), Idle()))

    assert made == {"few": "1 warehouse, about 96 MiB", "many": "8 warehouses, about 763 MiB"}


@pytest.mark.parametrize(
    ("differ", "data"),
    [
        ({"innodb_buffer_pool_size": (SMALL, LARGE)}, 129 * 2**20),
        ({"innodb_buffer_pool_size": (LARGE, SMALL)}, 129 * 2**20),
        ({"innodb_buffer_pool_size": (SMALL, LARGE)}, 0),
        ({"innodb_buffer_pool_size": ("", LARGE)}, 2_400_000),
        ({"sync_binlog": ("0", "1")}, 2_400_000),
    ],
    ids=["larger", "larger than the candidate's", "not known", "only one has it", "another variable"],
)
def test_other_data_and_equal_buffer_pools_have_no_such_line(differ, data):
    """Where a buffer pool is too small for the data, its size matters."""
    assert comparability.data_fits_line(differ, ("galera3", "big"), data) == ""


def test_clusters_of_other_shapes_are_shown():
    """A proxy is one more hop and a node one more server: a difference in speed may come from there."""
    group = ClusterSpec("group_replication", nodes=3, proxy="mysql_router")
    lone = ClusterSpec("standalone")

    assert comparability.shapes_line({"group": group, "tuned": group.with_options(max_connections=99)}) == []
    (line,) = comparability.shapes_line({"group": group, "alone": lone})
    assert missing(line, "group 3 nodes behind mysql_router", "alone 1 node behind no proxy") == []


def test_a_load_that_several_hosts_do_not_divide_is_said():
    """Whoever named two load hosts would think that both ran it."""
    loads, hosts = [MySQLSlap("write"), TPCC(), MySQLSlap("write")], [FakeHost("a"), FakeHost("b")]

    (line,) = comparability.undivided_lines(loads, hosts)
    assert line.startswith("load from 1 of 2 hosts: mysqlslap write c50 cannot be divided")
    assert comparability.undivided_lines(loads, hosts[:1]) == []
    assert comparability.undivided_lines([TPCC(), SysBench("oltp_read_only")], hosts) == []


@pytest.mark.parametrize("loads", [{1: "a", 16: "b"}, {"a": "a", "": "b"}])
def test_a_load_has_a_name_that_is_text(loads):
    """Known before anything starts: tables and files are made of it after all rounds are drawn."""
    pattern = r"^measure\(\{name: workload, \.\.\.\}, on=\[spec, \.\.\.\]\): a name is a text, got "
    with pytest.raises(ConfigError, match=pattern):
        comparability.check_loads(loads, [GALERA])


@pytest.mark.parametrize(
    ("on", "advice"),
    [
        ([GALERA], "add another workload"),
        ([GALERA] * 2, "write measure(workload, on=[...])"),
    ],
)
def test_one_load_by_name_is_refused(on, advice):
    """It would be compared with nothing, or needs no name."""
    with pytest.raises(ConfigError) as caught:
        comparability.check_loads({"few": "load"}, on)
    assert str(caught.value).endswith(f"got 1: {advice}")


class Loose(Idle):
    """A workload that is no value."""

    def __str__(self):
        return "loose"


@dataclasses.dataclass(frozen=True)
class Unnamed(Idle):
    """A workload that every claim would know by its address."""


@dataclasses.dataclass(frozen=True)
class Listed(Idle):
    """A workload with a list in it."""

    rows: list[int]

    def __str__(self):
        return "listed"


@dataclasses.dataclass(frozen=True)
class Quick(SysBench):
    """A workload of ours with another default."""

    seconds: float | None = 0.1


def test_a_workload_may_inherit_its_name():
    """From one of ours, with or without further fields."""
    comparability.check_workloads([Quick(), type("Renamed", (SysBench,), {})()])


@dataclasses.dataclass(frozen=True)
class Unreplicated(Idle):
    """A workload whose table no Galera replicates."""

    def __str__(self):
        return "unreplicated"

    def unfit(self, topology):
        """Only Galera is named."""
        return "shop/schema.sql:1:1: table t has engine MyISAM" if topology == "galera" else ""


def test_tables_that_a_topology_does_not_replicate_are_refused():
    """Each workload is asked about the topology of its own variant."""
    alone, galera = variant_of(ClusterSpec("standalone"), None), variant_of(GALERA, None)
    comparability.check_tables([Unreplicated(), Quick()], [alone, galera])

    with pytest.raises(ConfigError, match=r"^shop/schema\.sql:1:1: table t has engine MyISAM$"):
        comparability.check_tables([Quick(), Unreplicated()], [alone, galera])


def test_golden_messages_about_comparability():
    """They are those of the golden file."""
    sizes, hosts = {"innodb_buffer_pool_size": (SMALL, LARGE)}, [FakeHost("a"), FakeHost("b")]
    alone = ClusterSpec("standalone", proxy="haproxy")
    error = golden.message_of
    golden.compare(
        "comparability",
        {
            "data fits": comparability.data_fits_line(sizes, ("galera3", "big"), 2_400_000),
            "cannot be divided": comparability.undivided_lines([MySQLSlap("write")], hosts)[0],
            "shapes": comparability.shapes_line({"group": GALERA, "alone": alone})[0],
            "differences": comparability.differences_line("one", "other", {"sync_binlog": ("0", "1")}),
            "not a workload": error(comparability.check_workloads, ["write"]),
            "not frozen": error(comparability.check_workloads, [Loose()]),
            "without a name": error(comparability.check_workloads, [Unnamed()]),
            "not hashable": error(comparability.check_workloads, [Listed([1])]),
            "one workload": error(comparability.check_loads, {"few": "load"}, [GALERA]),
            "one workload on two specs": error(comparability.check_loads, {"few": "load"}, [GALERA] * 2),
            "a number as name": error(comparability.check_loads, {1: "a", 16: "b"}, [GALERA]),
            "rates differ": error(comparability.rate, [SysBench(), SysBench(rate=500.0)]),
        },
    )


def test_the_tables_of_a_data_set_do_not_depend_on_the_connections():
    """So a measurement that alternates two numbers of threads prepares each of them once."""
    one, many = SysBench(threads=1), SysBench(threads=16, seconds=3)

    assert comparability.data(one) == comparability.data(many)
    assert comparability.data(one) != comparability.data(SysBench("oltp_insert", threads=1))
    assert comparability.data(one) != comparability.data(SysBench(size=500))


def test_a_cluster_lacks_what_was_not_prepared_on_its_tables():
    """Other tables forget everything."""
    running = Running(None, None)

    assert running.lacks("tables", "one")
    running.prepared.add("one")
    assert not running.lacks("tables", "one")
    assert running.lacks("tables", "many")
    assert running.lacks("others", "one")
    assert running.lacks("tables", "one")

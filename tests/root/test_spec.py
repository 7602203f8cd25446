"""Specs and release names: values that are checked when they are made."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec, ReleaseName, parse_releases
from tests.support import golden
from tests.support.facts import missing

GALERA = ClusterSpec("galera", nodes=3)


@pytest.mark.parametrize("nodes", [0, -1, 1.5, "3", True, None])
def test_a_cluster_has_one_node_or_more(nodes):
    """Anything but a whole number from 1 is refused when the spec is written."""
    with pytest.raises(ConfigError) as caught:
        ClusterSpec("galera", nodes=nodes)

    assert f"nodes={nodes!r}" in str(caught.value)


def test_equal_specs_are_one_cluster():
    """Equality decides about reuse; the short name makes no difference to it."""
    assert ClusterSpec("galera", nodes=3) == GALERA == GALERA.named("mine")
    assert hash(GALERA) == hash(GALERA.named("mine"))
    assert GALERA.with_options(innodb_io_capacity=1) != GALERA
    assert GALERA.with_cnf("flush_2") != GALERA


def test_a_spec_cannot_be_changed():
    """Every variation is a new value."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        GALERA.nodes = 2


def test_the_short_name_is_the_test_id():
    """Topology and nodes, or the name of the last variation."""
    assert str(GALERA) == "galera3"
    assert GALERA.with_cnf("flush_2").short_name == "flush_2"
    assert GALERA.with_options(innodb_io_capacity=3000).short_name == "innodb_io_capacity_3000"
    assert GALERA.with_options(wsrep_provider_options="gcache.size=1G; x=2").short_name == (
        "wsrep_provider_options_gcache.size_1G_x_2"
    )
    assert GALERA.named("mine").short_name == "mine"


def test_options_have_one_spelling_and_one_order():
    """Two ways to write the same options give the same cluster."""
    one = GALERA.with_options({"innodb-io-capacity": 200, "SQL_MODE": ""})
    other = GALERA.with_options(sql_mode="").with_options(innodb_io_capacity="200")

    assert one == other
    assert one.options == (("innodb_io_capacity", "200"), ("sql_mode", ""))


def test_options_may_be_given_at_once():
    """A mapping works as with_options does, the short name too; a name that is given stays."""
    spec = ClusterSpec("galera", nodes=3, options={"innodb-io-capacity": 200, "SQL_MODE": ""})

    assert spec == GALERA.with_options({"innodb-io-capacity": 200, "SQL_MODE": ""})
    assert hash(spec) == hash(GALERA.with_options(innodb_io_capacity=200, sql_mode=""))
    assert spec.short_name == "innodb_io_capacity_200_sql_mode_"
    assert ClusterSpec("galera", options={"a": True}, name="mine").short_name == "mine"
    assert ClusterSpec("galera", options={"a": True}).options == (("a", "ON"),)
    assert ClusterSpec("galera", nodes=3, options={}).short_name == "galera3"


def test_options_of_the_proxy_make_another_cluster():
    """They are texts in one order, later ones win, and they name the variant as server options do."""
    behind = ClusterSpec("galera", nodes=3, proxy="haproxy")
    spec = behind.with_proxy_options({"fail-back": True}, fall=2).with_proxy_options(fail_back=False)

    assert spec.proxy_options == (("fail_back", "OFF"), ("fall", "2"))
    assert spec == ClusterSpec("galera", nodes=3, proxy="haproxy", proxy_options={"fall": 2, "fail_back": False})
    assert spec != behind
    assert spec.short_name == "fail_back_OFF"
    assert ClusterSpec("galera", proxy="haproxy", proxy_options={"fall": 2}).short_name == "fall_2"
    both = ClusterSpec("galera", proxy="haproxy", options={"a": 1}, proxy_options={"fall": 2})
    assert both.short_name == "a_1_fall_2"
    assert both.with_options(a=2).proxy_options == (("fall", "2"),)


def test_a_release_may_be_a_text():
    """As it is written for --db-release."""
    assert ClusterSpec("galera", release="mariadb:11.8").release == ReleaseName("mariadb", "11.8")


WRONG = {
    "nodes": ({"nodes": 0}, ("nodes=0", "1 node or more")),
    "a number as release": ({"release": 11.8}, ("release=11.8", '"mariadb:11.8"')),
    "a release without a vendor": ({"release": "11.8"}, ("'11.8'", "NAME:VERSION=DIRECTORY", "mariadb:10.11")),
    "an unknown vendor": ({"release": "postgresql:17"}, ("'postgresql:17'", "known: mariadb, mysql")),
    "proxy": ({"proxy": True}, ("proxy=True", "haproxy")),
    "options of no proxy": ({"proxy_options": {"fall": 2}}, ("proxy_options", "without a proxy", "proxy=")),
    "a list of proxy options": (
        {"proxy": "haproxy", "proxy_options": ["fall"]},
        ("proxy_options=['fall']", '{"fail_back": False}'),
    ),
    "needs": ({"needs": {"cores": 1}}, ("needs={'cores': 1}", "HostNeeds(cores=1)")),
    "a list of options": ({"options": ["a=1"]}, ("options=['a=1']", '{"innodb_io_capacity": 2000}')),
    "an option without a value": ({"options": {"a": None}}, ("option a=None", "a text, a number, True or False")),
    "an option with a list": ({"options": {"a": ["b"]}}, ("option a=['b']", "a text, a number, True or False")),
    "a number as option": ({"options": {5: 1}}, ("option 5=1", "a name is a text")),
    "cnf": ({"cnf": 5}, ("cnf=5", "names of my.cnf fragments")),
    "parity": ({"parity": "same"}, ("'same'", "vendor, normalised")),
    "a number as name": ({"name": 5}, ("name=5", "a short text")),
    "two lines": ({"name": "a\nb"}, ("name='a\\nb'", "one line")),
    "a control character": ({"name": "\x1b[31m"}, ("name='\\x1b[31m'", "printable")),
    "an unknown argument": ({"node": 3}, ("node=", "write nodes=")),
}


@pytest.mark.parametrize(("arguments", "facts"), WRONG.values(), ids=WRONG)
def test_a_wrong_argument_is_named(arguments, facts):
    """The message names the value and the accepted ones."""
    with pytest.raises(ConfigError) as caught:
        ClusterSpec("galera", **arguments)

    assert missing(caught.value, *facts) == []


def test_golden_messages_about_specs():
    """They are those of the golden file."""
    messages = {title: golden.message_of(ClusterSpec, "galera", **wrong) for title, (wrong, _) in WRONG.items()}
    messages["an unknown limit"] = golden.message_of(GALERA.with_needs, core=1)
    messages["no limit"] = golden.message_of(GALERA.with_needs)
    messages["memory"] = golden.message_of(GALERA.with_needs, memory="much")
    messages["an unknown server"] = golden.message_of(ReleaseName, "postgres", "17")
    messages["storage"] = golden.message_of(GALERA.with_storage, "gp9")
    golden.compare("spec", messages)


def test_needs_and_releases_are_checked_where_they_are_written():
    """Wrong names of limits, and servers that nobody knows."""
    with pytest.raises(ConfigError, match="cores="):
        GALERA.with_needs(core=1)
    with pytest.raises(ConfigError, match=r"postgres.*mariadb, mysql"):
        ReleaseName("postgres", "17")


def test_one_fragment_may_stand_alone():
    """A text is one name, not a name for each letter."""
    assert ClusterSpec("galera", cnf="flush_2").cnf == ("flush_2",)


def test_later_options_win():
    """As in a my.cnf."""
    assert GALERA.with_options(a=1).with_options(a=2).options == (("a", "2"),)


@pytest.mark.parametrize("name", [Path("/a/prod 1.cnf"), "/a/prod 1.cnf"])
def test_any_my_cnf_can_be_named_by_its_path(name):
    """The file's name without its end is the short name."""
    spec = GALERA.with_cnf(name)

    assert spec.cnf == ("/a/prod 1.cnf",)
    assert spec.short_name == "prod_1"
    assert spec == GALERA.with_cnf(Path("/a/prod 1.cnf"))


def test_a_relative_path_is_that_of_the_current_directory(tmp_path, monkeypatch):
    """Also of a bare file name that ends in .cnf; a name without an end is a fragment."""
    monkeypatch.chdir(tmp_path)

    assert GALERA.with_cnf("prod.cnf").cnf == (str(tmp_path / "prod.cnf"),)
    assert GALERA.with_cnf("sub/prod").cnf == (str(tmp_path / "sub/prod"),)
    assert GALERA.with_cnf("prod").cnf == ("prod",)


def test_fragments_are_laid_over_each_other_in_order():
    """They are read when the cluster is made."""
    assert GALERA.with_cnf("a").with_cnf("b").cnf == ("a", "b")


@pytest.mark.parametrize(
    ("text", "product", "version", "directory"),
    [
        ("mariadb:10.11", "mariadb", "10.11", ""),
        (" mariadb:path ", "mariadb", "path", ""),
        ("mysql:8.4=/opt/mysql-8.4", "mysql", "8.4", "/opt/mysql-8.4"),
    ],
)
def test_a_release_is_a_name_a_version_and_maybe_a_place(text, product, version, directory):
    """The place is no part of its short name."""
    assert ReleaseName.parse(text) == ReleaseName(product, version, directory)
    assert str(ReleaseName.parse(text)) == f"{product}:{version}"


@pytest.mark.parametrize(
    "text", ["", "mariadb", "10.11", "mariadb:", "mariadb:latest", "mariadb 10.11", "mariadb:1=", "MariaDB:1"]
)
def test_a_release_that_is_written_otherwise_is_refused(text):
    """The error shows how it is written."""
    with pytest.raises(ConfigError) as caught:
        ReleaseName.parse(text)

    assert "NAME:VERSION" in str(caught.value)
    assert repr(text) in str(caught.value)


def test_versions_compare_as_numbers():
    """10.11 comes after 10.5; what is on PATH has no number."""
    assert ReleaseName.parse("mariadb:10.11").series > ReleaseName.parse("mariadb:10.5").series
    assert ReleaseName.parse("mariadb:path").series == ()


def test_a_spec_keeps_its_own_release():
    """The release of the run is for those that name none."""
    old, new = ReleaseName("mariadb", "10.5"), ReleaseName("mariadb", "11.8")

    assert GALERA.on_release(new).release == new
    assert GALERA.on_release(old).on_release(new).release == old


OLD, NEW = ReleaseName("mariadb", "10.11"), ReleaseName("mariadb", "11.8")


@pytest.mark.parametrize(
    "given",
    [
        ("mariadb:10.11", "mariadb:11.8", "mariadb:11.8"),
        [OLD, NEW, "mariadb:11.8"],
        "mariadb:10.11+11.8+11.8",
        "mariadb:10.11+mariadb:11.8+11.8",
    ],
)
def test_each_node_may_have_its_release(given):
    """As a tuple, or as results name it; equal specs are one cluster."""
    spec = ClusterSpec("galera", nodes=3, release=given)

    assert spec.release == spec.releases == (OLD, NEW, NEW)
    assert spec.release_text == "mariadb:10.11+11.8+11.8"
    assert spec == ClusterSpec("galera", nodes=3, release=(OLD, NEW, NEW))
    assert hash(spec) != hash(GALERA)
    assert spec.with_options(innodb_io_capacity=1).on_release(OLD).release == spec.release


def test_equal_releases_are_one():
    """The cluster is the same as with one release."""
    spec = ClusterSpec("galera", nodes=3, release=("mariadb:11.8",) * 3)

    assert spec == ClusterSpec("galera", nodes=3, release="mariadb:11.8")
    assert (spec.releases, spec.release_text) == ((NEW,) * 3, "mariadb:11.8")
    assert (GALERA.releases, GALERA.release_text) == ((), "")


def test_the_last_node_may_have_a_directory():
    """It may have a plus in its name."""
    assert parse_releases("mysql:8.4+9.7=/opt/my+sql") == (
        ReleaseName("mysql", "8.4"), ReleaseName("mysql", "9.7", "/opt/my+sql"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "nodes", "words"),
    [
        (("mariadb:10.11", "mariadb:11.8"), 3, "nodes=3: name one release for all nodes, or one for each, not 2"),
        (("mariadb:11.8", "mariadb:11.8"), 3, "for each, not 2"),
        ("mariadb:10.11+11.8", 1, "nodes=1: name one release for all nodes, or one for each, not 2"),
        ((), 3, "for each, not 0"),
        (("mariadb:10.11", None, "mariadb:11.8"), 3, "None is no release"),
        (("mariadb:10.11", "11.8", "mariadb:11.8"), 3, "a release is written NAME:VERSION"),
        ("mariadb:10.11+", 2, "a release is written NAME:VERSION"),
        (11.8, 3, "it accepts a release such as"),
    ],
)
def test_wrong_releases_of_nodes_are_refused(given, nodes, words):
    """When the spec is written."""
    with pytest.raises(ConfigError) as caught:
        ClusterSpec("galera", nodes=nodes, release=given)
    assert words in str(caught.value)


def test_an_endpoint_never_shows_its_password():
    """Not in a repr, so not in a traceback either."""
    assert "secret" not in repr(Endpoint("127.0.0.1", 3306, "dbcluster", "secret"))


def test_another_instance_is_another_cluster():
    """Two that are alike otherwise are not one running cluster."""
    one = ClusterSpec("standalone")

    assert dataclasses.replace(one, instance=1) != one
    assert str(dataclasses.replace(one, instance=1)) == str(one)

"""Rounds of combinations of levels, on one server or on a fresh one for each value."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.network import REST
from pytest_dbcluster.rounds.round_length import RoundLength
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.options import levels
from pytest_dbcluster.testbed.options.level_testbed import LevelTestbed, compose, steps
from pytest_dbcluster.testbed.testbed import TURN, Testbed
from tests.support.testbeds import WRITE

TWO = {"a": ("1", "2"), "b": ("1", "0")}


def test_a_combination_is_composed_of_its_levels():
    """A variable that a level does not set has its value of a cold start."""
    base, added = steps(TWO, [{"b": "1"}, {"a": "2", "b": "1"}, {"b": "1"}, {}])

    assert [compose(base, added, number) for number in range(4)] == [{"b": "1"}, {"a": "2", "b": "1"}, {}, {"a": "2"}]


def test_what_an_option_changes_besides_belongs_to_it():
    """But another option keeps its own value."""
    base, added = steps(TWO, [{}, {"a": "2", "a_max": "4", "b": "9"}, {}, {"b": "0"}])

    assert compose(base, added, 1) == {"a": "2", "a_max": "4"}
    assert compose(base, added, 3) == {"a": "2", "a_max": "4", "b": "0"}


def test_a_level_without_an_effect_is_refused():
    """The servers would not differ."""
    with pytest.raises(ConfigError, match="b=1 and b=0 give the servers the same variables"):
        steps(TWO, [{}, {"a": "2"}, {}, {}])


def test_a_switch_adds_nothing_for_an_option_that_a_start_sets():
    """The cluster has started with it."""
    base, added = steps(TWO, [{"b": "1"}, {}, {"b": "1"}, {}], started=["a"])

    assert [compose(base, added, number) for number in range(4)] == [{"b": "1"}, {"b": "1"}, {}, {}]


def test_one_option_under_two_names_is_refused():
    """Both set the same variables."""
    with pytest.raises(ConfigError, match="a and b set the same variables; keep one of them"):
        steps(TWO, [{}, {"a": "2", "b": "2"}, {}, {"a": "0", "b": "0"}])


def test_two_options_that_change_a_third_variable_differently_are_refused():
    """No reference says what it would be with both."""
    with pytest.raises(ConfigError, match="a and b both change c; leave one of them out"):
        steps(TWO, [{}, {"a": "2", "c": "2"}, {}, {"b": "0", "c": "0"}])


ONE_SERVER = ClusterSpec("standalone", release=ReleaseName("mariadb", "10.11"))


def made_of(pool, options, *, static=None):
    """The testbed of these options on a server. static: number of a level -> its option that needs a start."""
    read = levels.read(options)
    usual = pool.resolution.defaults(pool.resolution.resolve(ONE_SERVER, switched=False))
    variants = [pool.resolution.resolve(spec) for spec in levels.specs(ONE_SERVER, read, usual)]
    for number, name in (static or {}).items():
        variants[number] = variants[number].with_static([name])
    return LevelTestbed(read, WRITE, variants, pool, "quick", lambda line: None)


def values(made, *names):
    """These variables of the server of the last round."""
    variables = made._used.nodes[0].variables()
    return [variables[name] for name in names]


def test_a_running_server_has_the_levels_of_the_round(shared):
    """All combinations on one server. The name of the variant has a digit for each option."""
    made = made_of(shared, {"lock_wait_timeout": (86400, 40), "sync_binlog": (0, 1)})
    found = {}
    for number in (3, 0, 2, 1):
        done = made.round(number, block=0, position=number)
        found[done.variant] = values(made, "lock_wait_timeout", "sync_binlog")
        assert not done.void

    assert found == {"00": ["86400", "0"], "10": ["40", "0"], "01": ["86400", "1"], "11": ["40", "1"]}
    assert len(shared.clusters) == 1
    assert made.evidence(Question(kinds.effect_differs(), 3, 2, made.metric)).differences == {
        ("sync_binlog=1", "sync_binlog=0"): {"sync_binlog": ("0", "1")}
    }
    made.check()


def test_samples_of_a_round_have_the_name_of_its_combination(shared, monkeypatch):
    """That is the name of the round, too."""
    made, names = made_of(shared, {"lock_wait_timeout": (86400, 40), "sync_binlog": (0, 1)}), []
    ordinary = Testbed._run_round

    def noted(self, workload, setting, **how):
        names.append(how["variant"])
        return ordinary(self, workload, setting, **how)

    monkeypatch.setattr(Testbed, "_run_round", noted)

    assert made.round(1, block=0, position=0).variant == "10"
    assert names == ["10"]


def test_the_expected_time_of_a_claim_counts_the_rounds_that_options_share(shared):
    """Two rounds of a pair, for any number of options."""
    lines = []
    made = made_of(shared, {"lock_wait_timeout": (86400, 40), "sync_binlog": (0, 1), "max_connections": (151, 152)})
    made._progress, made._workloads = lines.append, []
    made.set_length(RoundLength(1.0))

    assert RoundLength(1.0).expected_time(2) in lines[0]


def test_a_round_of_a_combination_has_the_network_and_the_options_of_the_topology(shared, monkeypatch):
    """Both are set again before each round, because another measurement may have changed them."""
    made, applied = made_of(shared, {"lock_wait_timeout": (86400, 40), "sync_binlog": (0, 1)}), []
    assert not made.round(0, block=0, position=0).void
    cluster = made._used
    path = SimpleNamespace(shape=applied.append)
    topology = SimpleNamespace(apply=lambda settings, nodes: applied.append(settings))
    made._shape(SimpleNamespace(cluster=SimpleNamespace(path=path, topology=topology, nodes=cluster.nodes)), 0)
    monkeypatch.setattr(made, "_shape", lambda running, variant: applied.append(variant))

    assert not made.round(3, block=0, position=1).void
    assert applied == [REST, {}, 0]


def test_a_switch_that_a_server_does_not_follow_makes_the_round_void(shared, monkeypatch):
    """It is drawn again, and the reason names the variable."""
    made = made_of(shared, {"lock_wait_timeout": (86400, 40), "sync_binlog": (0, 1)})
    monkeypatch.setattr(made, "_steps", [{"lock_wait_timeout": "99999999"}, {}])
    lost = made.round(1, block=0, position=0)
    monkeypatch.undo()

    assert "lock_wait_timeout" in lost.void
    assert not made.round(1, block=0, position=0).void
    made.check()


def test_an_option_that_needs_a_start_gets_a_fresh_server_for_each_value(pool):
    """Its rounds count as one value, and the other option is switched there."""
    made = made_of(pool, {"table_open_cache_instances": (8, 4), "lock_wait_timeout": (86400, 40)})
    servers, found = set(), []
    for position, number in enumerate((1, 3)):
        done = made.round(number, block=0, position=position)
        assert (done.void, done.outcome.operations) == ("", TURN * 20)
        servers.add(made._used)
        found.append((done.variant, *values(made, "table_open_cache_instances", "lock_wait_timeout")))

    assert made.one_at_a_time
    assert len(servers) == 2
    assert found == [("10", "4", "86400"), ("11", "4", "40")]


@pytest.mark.parametrize("needs_start", [0, 1], ids=["first", "second"])
def test_both_levels_are_in_effect_if_one_of_them_needs_a_start(pool, needs_start):
    """The server starts with the other one as well, although a running server could switch to it."""
    name = "max_connections"
    made = made_of(pool, {name: (256, 151)}, static={needs_start: name})
    found = []
    for position, number in enumerate((0, 1)):
        assert not made.round(number, block=0, position=position).void
        found += values(made, name)

    assert made.one_at_a_time
    assert found == ["256", "151"]


def test_all_options_have_evidence_after_their_servers_have_ended(pool):
    """Reading the variables of a level ends the server of the last round, whose data are measured before."""
    made = made_of(pool, {"innodb_buffer_pool_size": ("128M", "256M"), "innodb_autoinc_lock_mode": (1, 2)})
    assert not made.round(1, block=0, position=0).void
    found = [made.evidence(Question(kinds.effect_differs(), *pair, made.metric)) for pair in ((1, 0), (3, 2), (1, 0))]
    made._gatherer._variables.clear()
    found.append(made.evidence(Question(kinds.effect_differs(), 1, 0, made.metric)))

    assert [list(*one.differences.values()) for one in found[:2]] == [
        ["innodb_buffer_pool_size"],
        ["innodb_autoinc_lock_mode"],
    ]
    lines = ["".join(one.data_fits.values()) for one in found]
    assert ["fits into the smaller buffer pool" in line for line in lines] == [True, False, True, True]


def test_an_unknown_option_is_refused_with_the_one_that_may_be_meant(shared):
    """Before a server starts; and so is a level that the release does not have."""
    with pytest.raises(ConfigError, match=r"unknown option .sync_binlg. of mariadb:10\.11; did you mean sync_binlog"):
        made_of(shared, {"sync_binlg": (0, 1)})
    with pytest.raises(
        ConfigError, match=r"innodb_change_buffering=.some. of mariadb:10\.11: the server accepts one of"
    ):
        made_of(shared, {"innodb_change_buffering": ("none", "some")})

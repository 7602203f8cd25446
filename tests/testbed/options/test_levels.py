"""The options of a call and their levels: wrong ones are refused before anything starts."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.options import levels

ONE = ClusterSpec("standalone")


def test_levels_are_texts_by_normal_name():
    """A dash is an underscore, and True is ON."""
    found = levels.read({"sync-binlog": (1, 0), "innodb_adaptive_hash_index": [True, False]})

    assert found == {"sync_binlog": ("1", "0"), "innodb_adaptive_hash_index": ("ON", "OFF")}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "it accepts options with two levels"),
        ([("sync_binlog", (1, 0))], "it accepts options with two levels"),
        ({"sync_binlog": 0}, "0 is one level; give two, the baseline first"),
        ({"sync_binlog": (0,)}, "has 1 level; give two"),
        ({"sync_binlog": (1, True)}, "both levels of sync_binlog are 1"),
        ({"innodb_log_buffer_size": ("16M", 16777216)}, "both levels of innodb_log_buffer_size are 16M"),
        ({"sync_binlog": (1, 0), "sync-binlog": (1, 100)}, "'sync-binlog' and 'sync_binlog' are the same option"),
        ({"sync_binlog": (1, 0), "loose_sync_binlog": (1, 0)}, "are the same option; keep one of them"),
        ({3: (1, 0)}, "3 is not the name of an option"),
    ],
)
def test_wrong_options_are_refused(options, error):
    """With the option, and what to write instead."""
    with pytest.raises(ConfigError, match=error):
        levels.read(options)


def test_three_levels_are_two_calls():
    """The message has both of them."""
    with pytest.raises(ConfigError) as raised:
        levels.read({"innodb_io_capacity": (200, 1000, 4000)})

    assert "has 3 levels, and an option has two" in str(raised.value)
    assert "options={'innodb_io_capacity': (200, 1000)} and options={'innodb_io_capacity': (1000, 4000)}" in str(
        raised.value
    )


def test_pairs_name_two_of_the_options():
    """In any spelling and order, each once."""
    options = {"sync_binlog": ("1", "0"), "flush": ("1", "2")}

    assert levels.read_pairs([("sync-binlog", "flush")], options) == [("sync_binlog", "flush")]
    for pairs in ("sync_binlog", [("sync_binlog", "sync_binlog")], [("sync_binlog", "other")], [("flush",)]):
        with pytest.raises(ConfigError, match="pairs"):
            levels.read_pairs(pairs, options)
    with pytest.raises(ConfigError, match="is there twice"):
        levels.read_pairs([("sync_binlog", "flush"), ("flush", "sync_binlog")], options)


def test_more_options_than_the_rounds_allow_are_refused():
    """The message says how many rounds they need."""
    levels.check_number(5, 2, 0.0005, 160)
    levels.check_number(5, 0, 0.0005, 16)
    with pytest.raises(ConfigError, match="10 of them need 20 rounds of each level or more"):
        levels.check_number(10, 0, 0.0005, 16)
    with pytest.raises(
        ConfigError, match="1 of them need 16 rounds of each level or more, and --db-max-pairs allows 12"
    ):
        levels.check_number(1, 0, 0.0005, 12)


def test_a_level_that_the_servers_have_anyway_is_left_out_of_the_spec():
    """So its cold-start reference is that of other tests. Names say which level a spec has."""
    options = {"sync_binlog": ("1", "0"), "innodb_log_buffer_size": ("16M", "64M")}
    usual = {"sync_binlog": "0", "innodb_log_buffer_size": "16777216"}
    found = levels.specs(ONE, options, usual)

    assert [str(spec) for spec in found] == [
        "sync_binlog=1",
        "sync_binlog=0",
        "innodb_log_buffer_size=16M",
        "innodb_log_buffer_size=64M",
    ]
    assert [dict(spec.options) for spec in found] == [
        {"sync_binlog": "1"},
        {"sync_binlog": "0"},
        {"sync_binlog": "1"},
        {"sync_binlog": "1", "innodb_log_buffer_size": "64M"},
    ]


def test_an_option_of_the_spec_gets_its_first_level():
    """Even if that is the value of a server without options."""
    found = levels.specs(ONE.with_options(sync_binlog=100), {"sync_binlog": ("0", "1")}, {"sync_binlog": "0"})

    assert [dict(spec.options) for spec in found] == [{"sync_binlog": "0"}, {"sync_binlog": "1"}]


def test_an_option_whose_levels_have_other_clusters_needs_a_start():
    """Its second level is not a variant of the first one's cluster."""
    options = {"sync_binlog": ("1", "0"), "innodb_buffer_pool_size": ("128M", "1G")}

    assert levels.options_at_start([1, 1, 1, 2], options) == ["innodb_buffer_pool_size"]
    assert levels.options_at_start([1, 1, 1, 1], options) == []

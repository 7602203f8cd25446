"""Server options: the checks against the server's own list, and the comparison with what runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.dialects.implied_options import ImpliedOption
from pytest_dbcluster.clusters.dialects.mysql import MYSQL
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers import path_options, variables
from pytest_dbcluster.clusters.servers.data_template import Template
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.release import Release
from tests.support.facts import missing
from tests.support.fakes import variable

KNOWN = {
    "innodb_flush_log_at_trx_commit": variable(
        "innodb_flush_log_at_trx_commit", kind="BIGINT UNSIGNED", minimum="0", maximum="3"
    ),
    "innodb_buffer_pool_size": variable(
        "innodb_buffer_pool_size", kind="BIGINT UNSIGNED", minimum="2097152", maximum=str(2**63)
    ),
    "binlog_row_image": variable("binlog_row_image", kind="ENUM", choices=("MINIMAL", "NOBLOB", "FULL")),
    "innodb_doublewrite": variable("innodb_doublewrite", kind="BOOLEAN", choices=("OFF", "ON")),
    "log_bin": variable("log_bin", kind="BOOLEAN", choices=("OFF", "ON")),
    "long_query_time": variable("long_query_time", kind="DOUBLE", minimum="0", maximum="31536000"),
    "sql_mode": variable("sql_mode", kind="SET"),
}
WORDS = frozenset({"skip_name_resolve", "innodb_flush_log_at_trx_commit"})
RELEASE = "mariadb:10.11"
NEW = Release(RELEASE, "mariadb", "10.11.19", Path("bin"))


def refused(**given):
    """The error for options."""
    with pytest.raises(ConfigError) as caught:
        opts.check(given, KNOWN, WORDS, NEW)
    return str(caught.value)


def test_a_misspelt_option_is_answered_with_the_right_one():
    """Before any server is started."""
    misspelt = refused(innodb_flush_log_at_trx_comit="2")

    assert misspelt.startswith("unknown option 'innodb_flush_log_at_trx_comit' of mariadb:10.11")
    assert misspelt.endswith("innodb_flush_log_at_trx_commit?")
    assert refused(nothing_like_it="2") == "unknown option 'nothing_like_it' of mariadb:10.11"
    assert "innodb_buffer_pool_size and innodb_log_file_size" in refused(innodb_dedicated_server="ON")


@pytest.mark.parametrize("name", ["datadir", "port", "wsrep_cluster_address", "loose_group_replication_group_name"])
def test_options_of_ours_are_refused(name):
    """Options of ours are refused, because a cluster needs its own values."""
    assert refused(**{name: "x"}).startswith(f"option {name!r}: pytest-dbcluster itself sets it")


@pytest.mark.parametrize(
    ("name", "value", "takes"),
    [
        ("innodb_flush_log_at_trx_commit", "4", "a number from 0 to 3"),
        ("innodb_flush_log_at_trx_commit", "-1", "a number from 0 to 3"),
        ("innodb_flush_log_at_trx_commit", "often", "a number from 0 to 3"),
        ("innodb_flush_log_at_trx_commit", "", "a number from 0 to 3"),
        ("innodb_buffer_pool_size", "1.5G", "whole numbers; write 1536M"),
        ("innodb_buffer_pool_size", "1.0005G", "whole numbers; write 1074278694"),
        ("innodb_buffer_pool_size", "1K", f"a number from 2097152 to {2**63}"),
        ("binlog_row_image", "SMALL", "one of MINIMAL, NOBLOB, FULL"),
        ("innodb_doublewrite", "maybe", "ON or OFF"),
        ("long_query_time", "long", "a number"),
    ],
)
def test_a_value_that_the_server_would_refuse_is_refused_before(name, value, takes):
    """The error says what the server accepts."""
    text = refused(**{name: value})

    assert text.startswith(f"option {name}={value!r} of mariadb:10.11: ")
    assert text.endswith(f"accepts {takes}")


MADE = Template(Path(), "", KNOWN | {"innodb_buffer_pool_instances": variable("innodb_buffer_pool_instances")}, WORDS)
OLD = Release("mariadb:10.5", "mariadb", "10.5.23", Path("bin"))


def test_what_a_server_always_does_is_left_out_and_named():
    """An implied option with the fixed value is left out, and a line says why."""
    asked = {"innodb_flush_log_at_trx_commit": "2", "innodb_snapshot_isolation": "off"}

    options, lines = opts.fit(asked, MADE, OLD)

    assert options == {"innodb_flush_log_at_trx_commit": "2"}
    assert len(lines) == 1
    assert "mariadb:10.5 has no option innodb_snapshot_isolation" in lines[0]
    assert "a transaction may change a row" in lines[0]


def test_what_a_server_never_does_is_refused():
    """An implied option with another value is an error, which says how the server behaves."""
    with pytest.raises(ConfigError, match=r"innodb_snapshot_isolation='ON' of mariadb:10\.5.* behaves as with OFF"):
        opts.fit({"innodb_snapshot_isolation": "ON"}, MADE, OLD)


def test_an_option_that_the_server_knows_is_not_left_out():
    """An option in the server's own list is passed, whatever the table of versions says."""
    newer = dataclasses.replace(OLD, version="10.11.19")
    asked = {"innodb_buffer_pool_instances": "1"}

    assert opts.fit(asked, MADE, newer) == (asked, [])
    assert opts.fit(asked, dataclasses.replace(MADE, variables=KNOWN), newer)[0] == {}


def test_options_that_fit_are_checked():
    """A misspelt option is refused."""
    with pytest.raises(ConfigError, match=r"^unknown option 'innodb_snapshot_insulation' of mariadb:10\.5$"):
        opts.fit({"innodb_snapshot_insulation": "OFF"}, MADE, OLD)


def test_our_own_options_that_a_server_lacks_are_named(monkeypatch):
    """A pinned option that this server lacks is reported in a line."""
    words = dataclasses.replace(MYSQL, implied={"binlog_format": ImpliedOption("ROW", "the binlog always holds rows")})
    monkeypatch.setattr(opts, "dialect", lambda *_: words)

    assert "binlog_format" in words.pinned
    assert "binlog_format" not in words.preset
    fitted, (line,) = opts.fit({}, MADE, OLD)
    assert fitted == {}
    assert missing(line, "mariadb:10.5 has no option binlog_format", "as with ROW: the binlog always holds rows") == []


def test_values_that_the_server_takes_pass():
    """With suffixes, as numbers of a choice, in any case, without a value."""
    good = {
        "innodb_flush_log_at_trx_commit": "2",
        "innodb_buffer_pool_size": "128m",
        "binlog_row_image": "minimal",
        "innodb_doublewrite": "",
        "log_bin": "/data/binlog",
        "long_query_time": "0.5",
        "sql_mode": "STRICT_TRANS_TABLES",
        "skip_name_resolve": "",
        "skip_innodb_doublewrite": "",
        "loose_no_such_option": "1",
    }

    assert opts.check(good, KNOWN, WORDS, NEW) is None
    assert opts.check({"binlog_row_image": "1"}, KNOWN, WORDS, NEW) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        ("1K", 1024),
        ("1.5M", 1.5 * 2**20),
        ("2g", 2**31),
        ("-1", -1),
        ("x", None),
        ("", None),
        ("1P", 2**50),
        ("1e", 2**60),
    ],
)
def test_numbers_have_the_servers_suffixes(text, number):
    """Other text is no number."""
    assert variables.as_number(text) == number


@pytest.mark.parametrize(
    ("asked", "running", "same"),
    [
        ("2", "2", True),
        ("ON", "1", True),
        ("off", "OFF", True),
        ("", "ON", True),
        ("1G", str(2**30), True),
        ("1000M", str(2**30), True),
        ("1000M", str(900 * 2**20), False),
        ("1K", "1025", False),
        ("2", "1", False),
        ("utf8", "utf8mb3", True),
        ("/data/binlog", "ON", True),
        ("mrr=on", "index_merge=on,mrr=on", True),
        ("1", "MINIMAL", True),
    ],
)
def test_a_running_value_is_the_asked_one_up_to_a_chunk(asked, running, same):
    """Sizes may be rounded up by less than a buffer pool's chunk; text has more than one spelling."""
    assert variables.same(asked, running) is same


def test_a_value_that_the_server_changed_is_said():
    """Options that are no variables are not compared."""
    assert opts.adjustments({"a": "1", "skip_x": "", "c": "x=1;y=2"}, {"a": "1", "c": "x=1"}, RELEASE) == []
    (line,) = opts.adjustments({"a": "1"}, {"a": "2"}, RELEASE)
    assert line.startswith("mariadb:10.11 was started with a=1 and runs with 2")


def test_skip_networking_is_refused_at_once():
    """A server without a port would be waited for in vain."""
    assert refused(skip_networking="ON").startswith("option 'skip_networking' would reject every client")


@pytest.mark.parametrize(("name", "value"), [("binlog_row_image", "FULL\nport=1"), ("!include", "x"), ("a\nb", "1")])
def test_text_that_is_no_single_line_is_refused(name, value):
    """It would put other options into the my.cnf."""
    assert "control character" in (message := refused(**{name: value})) or "the name of an option has" in message


@pytest.mark.parametrize(
    "name",
    [
        *("bind_address", "loose_bind_address", "loose_bind_addr", "admin_address", "extra_port", "mysqlx_port"),
        *("mysqlx", "skip_mysqlx", "loose_skip_mysqlx", "group_replication_ip_allowlist", "handlersocket_port"),
        *("loose_group_replication_ip_allowlist", "wsrep_provider_gmcast_listen_addr"),
    ],
)
def test_no_option_of_a_user_opens_a_port(name):
    """Where servers listen, and whom they let in, is never a user's option, with whatever prefix it is written."""
    assert refused(**{name: "0.0.0.0"}).startswith(f"option {name!r}: pytest-dbcluster itself sets it")


def test_other_loose_options_stay():
    """An option that this server does not know may be loose, as long as it abbreviates none of ours."""
    opts.check({"loose_innodb_new_thing": "1", "loose_sql_mode": "x"}, KNOWN, WORDS, RELEASE)


def test_addresses_inside_the_provider_options_are_left_out():
    """So is pc.recovery, with which nodes form a cluster. A line names the change, and other spellings are refused."""
    given = "gcs.fc_limit=64; gmcast.listen_addr=tcp://0.0.0.0:4567; ist.recv_bind=0.0.0.0; pc.recovery=no"

    kept, lines = path_options.move_inside({"wsrep_provider_options": given})

    assert kept == {"wsrep_provider_options": "gcs.fc_limit=64"}
    assert lines[0].startswith(f"wsrep_provider_options={given} becomes gcs.fc_limit=64")
    for spelled in ("GMCAST.listen_addr=tcp://0.0.0.0:4567", "IST.recv_bind=0.0.0.0"):
        with pytest.raises(ConfigError, match="wsrep_provider_options"):
            path_options.move_inside({"wsrep_provider_options": spelled})


@pytest.mark.parametrize(
    "name", ["loose_bind_addr", "loose_extra_por", "extra_port", "mysqlx_port", "group_replication_ip_allowlist"]
)
def test_an_option_that_opens_a_port_is_refused(name):
    """Also behind ``loose_`` and abbreviated, as MariaDB accepts it: clusters listen only on 127.0.0.1."""
    with pytest.raises(ConfigError, match=f"option {name!r}: pytest-dbcluster itself sets it"):
        opts.refuse_ours({name: "1"})


def test_differences_name_what_one_side_lacks():
    """A missing variable is the empty text."""
    assert opts.differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == {"b": ("2", "3"), "c": ("", "4")}

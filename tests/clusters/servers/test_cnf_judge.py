"""What releases make of a my.cnf: real servers of both vendors are asked."""

from __future__ import annotations

import re

import pytest

from pytest_dbcluster.clusters.servers import cnf_file, cnf_judge
from pytest_dbcluster.clusters.servers.cnf_judge import instead, judge_file, values
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.releases import find
from tests.support.facts import missing


@pytest.fixture
def judge(tmp_path, provisioner, mariadb, mysql):
    """``judge("mysql", text)``: what the vendor's release makes of a my.cnf with this text."""

    def judge(vendor, text, name="my.cnf"):
        path = tmp_path / name
        path.write_text(text)
        return judge_file(cnf_file.read(path), {"mariadb": mariadb, "mysql": mysql}[vendor], provisioner)

    return judge


def refused(judge, vendor, text):
    """The lines of the error about a file."""
    with pytest.raises(ConfigError) as caught:
        judge(vendor, text)
    return str(caught.value).split("\n  ")


@pytest.mark.parametrize(
    ("vendor", "text", "options"),
    [
        ("mariadb", "[mariadb]\nsync_binlog=1\n[mysqld]\nsync_binlog=2\n", {"sync_binlog": "2"}),
        ("mariadb", "[mysqld]\nsync_binlog=1\n[server]\nsync_binlog=2\n", {"sync_binlog": "2"}),
        ("mariadb", "[mariadb-10.11]\nsync_binlog=3\n[mariadb-10.5]\nsync_binlog=4\n", {"sync_binlog": "3"}),
        ("mysql", "[mysqld-9.7]\nsync_binlog=3\n[mysqld-8.0]\nsync_binlog=4\n", {"sync_binlog": "3"}),
        ("mariadb", "[client-server]\nmax_allowed_packet=32M\n[client]\nx=1\n", {"max_allowed_packet": "32M"}),
        (
            "mariadb",
            "[mysqld]\nmax-connections = 99\nskip-name-resolve\ndisable-innodb-doublewrite\ninnodb_io_capacity_m=3000\n"
            "innodb_buffer_pool_size=1T\nft_boolean_syntax=\"+ -><()~*:''&|\" # x\n",
            {
                "max_connections": "99",
                "skip_name_resolve": "",
                "disable_innodb_doublewrite": "",
                "innodb_io_capacity_max": "3000",
                "innodb_buffer_pool_size": "1T",
                "ft_boolean_syntax": "+ -><()~*:''&|",
            },
        ),
        (
            "mysql",
            "[mysqld]\nsql_mode=''\nhot.key_buffer_size=1M\nlog_bin=/var/log/mysql/bin\n"
            "transaction_write_set_extraction=XXHASH64\n",
            {
                "sql_mode": "''",
                "hot.key_buffer_size": "1M",
                "log_bin": "bin",
                "transaction_write_set_extraction": "XXHASH64",
            },
        ),
        ("mariadb", "[mysqld]\nskip_innodb_doublewrite\ninnodb_doublewrite=1\n", {"innodb_doublewrite": "1"}),
        ("mariadb", "[mysqld]\nloose_sync_binlog=1\nloose-made-up=1\n", {"sync_binlog": "1"}),
        ("mysql", "[mysqld]\nloose_sync_binlog=1\nloose-made-up=1\n", {"sync_binlog": "1"}),
        ("mariadb", "[mysqld]\nSync_Binlog=1\n", {"sync_binlog": "1"}),
        ("mariadb", "[mysqld]\ninnodb_buffer_pool_size=80 %\n", {"innodb_buffer_pool_size": "80 %"}),
        (
            "mysql",
            "[mysqld]\nplugin_load_add=semisync_source.so\nplugin-load-add=semisync_replica.so\n"
            "rpl_semi_sync_source_timeout=500\n",
            {"plugin_load_add": "semisync_source.so;semisync_replica.so", "rpl_semi_sync_source_timeout": "500"},
        ),
        (
            "mysql",
            "[mysqld]\nplugin_load_add=semisync_source.so\nplugin_load=semisync_replica.so\n",
            {"plugin_load_add": "semisync_replica.so"},
        ),
    ],
)
def test_options_are_those_that_the_server_takes(judge, vendor, text, options):
    """Its groups in the order of the file, its prefixes, abbreviations and sizes; the last of several counts."""
    assert dict(judge(vendor, text).options) == options


def test_one_error_has_everything_that_is_wrong(judge):
    """Each with file and line, and what became of the option in that release."""
    lines = refused(
        judge,
        "mysql",
        "[mysqld]\nquery_cache_size=64M\nexpire_logs_days=7\ninnodb_flush_log_at_trx_comit=2\nset-variable=key_buffer=16M\n"
        "innodb_log_file_size=1G\ntx_isolation=READ-COMMITTED\nwsrep_slave_threads=4\nbinlog_row_image=SMALL\n"
        "innodb_buffer_pool_size=1.5G\nmade_up=/elsewhere\nplugin_load_add=none.so\nsync_binlog=1\n",
    )

    numbered = {int(line.split(":")[1]): line for line in lines[1:]}
    facts = {
        2: ["query_cache_size=64M", "behaves as with 0"],
        3: ["expire_logs_days=7", "binlog_expire_logs_seconds"],
        4: ["innodb_flush_log_at_trx_comit=2", "innodb_flush_log_at_trx_commit?"],
        5: ["set-variable=key_buffer=16M", "name = value"],
        6: ["innodb_log_file_size=1G", "innodb_redo_log_capacity"],
        7: ["tx_isolation=READ-COMMITTED", "transaction_isolation"],
        8: ["wsrep_slave_threads=4", "MariaDB servers"],
        9: ["binlog_row_image=SMALL", "'SMALL' to 'binlog_row_image'"],
        10: ["innodb_buffer_pool_size=1.5G", "suffix '.'"],
        11: ["made_up='/elsewhere'", "looks like a path"],
        12: ["plugin_load_add=none.so", "mysql:9.7 has no plugin none.so"],
    }
    assert "mysql:9.7" in lines[0]
    assert "11 lines of my.cnf" in lines[0]
    assert [number for number, words in facts.items() if not all(word in numbered[number] for word in words)] == []
    assert len(lines) == len(facts) + 1


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "innodb_dedicated_server=ON",
            "an option of MySQL servers; set innodb_buffer_pool_size and innodb_log_file_size",
        ),
        ("tx_isolation=x", "transaction_isolation"),
        ("innodb_file_format=Barracuda", "every table has the newest format"),
        ("log_slow_queries=x", "renamed to slow_query_log and slow_query_log_file"),
        ("binlog_row_image=SMALL", "SMALL"),
        ("innodb_buffer_pool_size=1.5G", "Unknown suffix '.'"),
        ("innodb_buffer_pool=1G", "ambiguous option: it can mean innodb_buffer_pool_"),
        ("sql_mode='a\\nb'", "the value has a control character ('\\n')"),
        ("!a b=c", ""),
        ("a b=c", "the name of an option has only letters, digits"),
    ],
)
def test_a_line_that_mariadb_does_not_accept_is_explained(judge, option, words):
    """In the words of the table, of the check, or of the server itself."""
    if not words:
        assert judge("mariadb", f"[mysqld]\n{option}\n").options == {}
        return
    _, line = refused(judge, "mariadb", f"[mysqld]\n{option}\n")

    assert line.startswith("my.cnf:2: ")
    assert words in line


def test_what_concerns_the_old_host_is_left_out_and_said_once(judge):
    """Addresses, names, files, accounts and who may write; each with its line, no value, so no password is shown."""
    found = judge(
        "mariadb",
        "[mysqld]\nuser=mysql\nport=3307\nsocket=/run/x\ndatadir=/data\npid-file=/run/p\nbind-address=10.0.0.1\n"
        "server-id=7\nskip-networking\nrequire_secure_transport=ON\nread_only=1\nwsrep_cluster_name=prod\n"
        "wsrep_cluster_address=gcomm://10.0.0.1,10.0.0.2\nwsrep_sst_auth=root:secret\ntmpdir=/a:/b\nsync_binlog=1\n",
    )

    assert found.options == {"sync_binlog": "1"}
    (line,) = found.lines
    assert line.startswith("left out 14 lines of my.cnf ")
    assert line.endswith(
        ": user (my.cnf:2), port (my.cnf:3), socket (my.cnf:4), datadir (my.cnf:5), pid_file (my.cnf:6), "
        "bind_address (my.cnf:7), server_id (my.cnf:8), skip_networking (my.cnf:9), "
        "require_secure_transport (my.cnf:10), read_only (my.cnf:11), wsrep_cluster_name (my.cnf:12), "
        "wsrep_cluster_address (my.cnf:13), wsrep_sst_auth (my.cnf:14), tmpdir (my.cnf:15)"
    )


def test_one_line_that_is_left_out_is_one_line(judge):
    """The sentence has the right number."""
    (line,) = judge("mysql", "[mysqld]\nport=1\n").lines
    assert line.startswith("left out 1 line of my.cnf that concerns ")
    assert line.endswith(": port (my.cnf:2)")


def test_moved_files_are_said(judge):
    """With the name that each file gets."""
    (line,) = judge("mariadb", "[mysqld]\nlog_bin=/x/bin\ngeneral_log_file=/y/all.log\n").lines
    assert line.startswith("moved files of my.cnf into each node's data directory: ")
    assert line.endswith("log_bin=/x/bin as bin (my.cnf:2), general_log_file=/y/all.log as all.log (my.cnf:3)")


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_value_that_the_server_changes_is_said(judge, vendor):
    """The file is taken, and one line has the server's own words or value."""
    found = judge(vendor, "[mysqld]\nmax_connections=200000\n")

    assert found.options == {"max_connections": "200000"}
    (line,) = found.lines
    assert re.search(rf"^my\.cnf:2: {vendor}:\S+ changes max_connections=200000 to \d+$", line)


def test_effective_values_are_the_servers_own(judge):
    """Of all options, with sizes as numbers."""
    effective = judge("mariadb", "[mysqld]\ninnodb_buffer_pool_size=1G\n").effective

    assert effective["innodb_buffer_pool_size"] == str(2**30)
    assert len(effective) > 400


def test_groups_of_other_servers_are_named(judge):
    """Those of clients are not worth a word."""
    (line,) = judge("mysql", "[mysqld]\n[mariadb]\nb=1\n[mysqldump]\nquick\n[mysqld-5.7]\nc=1\n").lines
    assert line.startswith("mysql:9.7 does not read [mariadb] (b) and [mysqld-5.7] (c) of my.cnf, only ")
    assert line.endswith("[mysql_cluster], [mysqld], [server], [mysqld-9.7]")


def test_missing_includes_are_noted(judge):
    """The rest of the file counts."""
    found = judge("mariadb", "[mysqld]\nsync_binlog=1\n!includedir /etc/mysql/conf.d\n")

    assert found.options == {"sync_binlog": "1"}
    assert found.lines[0].startswith("my.cnf:3: !includedir /etc/mysql/conf.d was not read: ")


def test_a_file_that_the_release_reads_otherwise_is_refused(judge, monkeypatch):
    """The error has the first difference; a value that may be a secret is not shown."""
    monkeypatch.setattr(cnf_file, "_unescape", lambda value: value.upper())

    with pytest.raises(ConfigError) as caught:
        judge("mysql", "[mysqld]\nsync_binlog=1\nwsrep_sst_auth=me\n")
    assert "mysql:9.7 reads option 2 as --wsrep_sst_auth=..., " in str(caught.value)
    assert "(my.cnf:3)" in str(caught.value)


def test_the_value_of_an_unknown_token_is_not_shown(judge):
    """A plugin that the release lacks may have such an option."""
    with pytest.raises(ConfigError) as caught:
        judge("mariadb", "[mysqld]\nvault_token=s.1a2b3c\n")

    assert missing(str(caught.value), "my.cnf:2", "vault_token=...") == []
    assert "s.1a2b3c" not in str(caught.value)


def test_a_file_is_judged_once(judge, tmp_path, mariadb, provisioner, monkeypatch):
    """Also one that is refused; a changed file is judged again."""
    text = "[mysqld]\nsync_binlog=77\n"
    first = judge("mariadb", text)
    refused(judge, "mariadb", "[mysqld]\nnothing=1\n")
    with monkeypatch.context() as patch:
        patch.setattr(type(provisioner), "acquire", lambda *_: pytest.fail("it was asked again"))
        assert judge("mariadb", text) is first
        refused(judge, "mariadb", "[mysqld]\nnothing=1\n")
        with pytest.raises(pytest.fail.Exception):
            judge("mariadb", "[mysqld]\nsync_binlog=78\n")


def test_a_file_without_server_options_asks_nobody(tmp_path, mariadb):
    """An empty section needs no program."""
    path = tmp_path / "default.cnf"
    path.write_text("[mysqld]\n")

    assert judge_file(cnf_file.read(path), mariadb, FakeProvisioner()).options == {}


@pytest.mark.parametrize("name", ["mariadb:10.5", "mariadb:10.11", "mariadb:11.8", "mysql:9.7"])
def test_the_files_of_a_distribution_are_taken_as_they_are(name, provisioner):
    """The my.cnf that the package of the release installs, with its directories of more files."""
    found = find.find(name)
    root = found.bin.parent / "root"
    top = {"mariadb": "etc/mysql/mariadb.cnf", "mysql": "etc/mysql/mysql.cnf"}[found.product]
    verdict = judge_file(cnf_file.read(root / top, root), found, provisioner)

    assert verdict.aside
    assert len(verdict.effective) > 400
    assert not any("was not read" in line for line in verdict.lines)


def sample(name):
    """The my.cnf for Galera that the package of a server has among its shared files, and the release."""
    found = find.find(name)
    (path,) = (found.bin.parent / "root/usr/share").glob("*/wsrep.cnf")
    return cnf_file.read(path), found


def test_a_sample_of_a_distribution_is_taken_as_it_is(provisioner):
    """Most of it is another host's."""
    verdict = judge_file(*sample("mariadb:10.11"), provisioner)

    assert len(verdict.aside) > 5
    assert verdict.options["binlog_format"].upper() == "ROW"


def test_a_sample_that_its_own_server_refuses_is_explained(provisioner, tmp_path):
    """Packages of 11.8 have shipped a line that their server does not start with."""
    (path,) = (find.find("mariadb:11.8").bin.parent / "root/usr/share").glob("*/wsrep.cnf")
    text = path.read_text().replace("\nwsrep_causal_reads=0\n", "\n") + "\n[mysqld]\nwsrep_causal_reads=0\n"
    (tmp_path / "wsrep.cnf").write_text(text)

    with pytest.raises(ConfigError) as caught:
        judge_file(cnf_file.read(tmp_path / "wsrep.cnf"), find.find("mariadb:11.8"), provisioner)

    (line,) = str(caught.value).split("\n  ")[1:]
    assert line.startswith(f"wsrep.cnf:{len(text.splitlines())}: wsrep_causal_reads=0: mariadb:11.8 has no such option")
    assert "wsrep_sync_wait" in line


def test_suggestions_are_the_releases_own_options(mariadb):
    """And only where a name is probably misspelt."""
    words = ["innodb_page_size", "sync_binlog"]

    assert instead("innodb_pages_size", mariadb, words) == "; did you mean innodb_page_size?"
    assert instead("innodb_package", mariadb, words) == ""


def test_values_are_read_from_the_table_of_help():
    """It begins after the line of dashes and ends at an empty line."""
    text = "x\nVariables (--variable-name=value)\n---- ----\nback-log  80\ntmpdir   (No default value)\nempty\n\ny 1\n"

    assert values(text) == {"back_log": "80", "tmpdir": "(No default value)", "empty": ""}


def test_every_problem_of_the_server_itself_is_found(judge):
    """The server stops at the first value that it refuses, so it is asked until none is left."""
    lines = refused(judge, "mariadb", "[mysqld]\nbinlog_row_image=A\nbinlog_checksum=B\ntransaction_isolation=C\n")

    assert [line.split(":")[1] for line in sorted(lines[1:])] == ["2", "3", "4"]


def test_the_host_is_given_back(tmp_path, mariadb, monkeypatch):
    """Also when the release cannot be asked."""
    monkeypatch.setattr(cnf_judge, "_helps", {})
    monkeypatch.setattr(cnf_judge, "_answers", {})
    path, fake = tmp_path / "my.cnf", FakeProvisioner()
    path.write_text("[mysqld]\nsync_binlog=1\n")

    with pytest.raises(ConfigError, match=r"--help of mariadb:10\.11 does not list the my\.cnf groups"):
        judge_file(cnf_file.read(path), mariadb, fake)
    assert fake.hosts == []

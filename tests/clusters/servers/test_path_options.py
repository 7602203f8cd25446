"""Options that name files: what stays inside of a node, what is left out, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.clusters.servers import path_options
from pytest_dbcluster.clusters.servers.cnf_file import read
from pytest_dbcluster.clusters.servers.cnf_judge import values
from pytest_dbcluster.clusters.servers.data_template import help_text, option_words
from pytest_dbcluster.clusters.servers.host_options import OURS, of_host
from pytest_dbcluster.clusters.servers.path_options import FILE_LISTS, FILES, LEFT_OUT, LIST, NO_PATH
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec

# Options whose name speaks of files, although their value is a number, a switch or a pattern.
NO_FILE = frozenset(
    """
    aria_sync_log_dir ignore_db_dirs innodb_adaptive_hash_index innodb_buffer_pool_in_core_file innodb_status_file
    innodb_doublewrite_files innodb_log_files_in_group keep_files_on_create unix_socket version_comment
    """.split()  # noqa: SIM905
)
NAMES_A_FILE = re.compile(
    r"dir$|dirs$|directory$|directories$|_home$|_file$|_path$|_filename$|_basename$|_index$|_cert$|_ca$|_capath$|_crl$"
    r"|_crlpath$|socket$|_cmd$|_filekey$"
)
# Options that name an index or a key of data, not of files.
NO_FILE_EITHER = re.compile(r"^(innodb_ft_index|ndb_|innodb_cmp_|binlog_gtid_index|log_queries|performance_schema_)")


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("log_bin", "/elsewhere/mariadb-bin", "mariadb-bin"),
        ("log_bin", "mariadb-bin", "mariadb-bin"),
        ("log_bin", "", ""),
        ("log_bin", "''", "''"),
        ("sql_mode", "''", "''"),
        ("tmpdir", "''", None),
        ("log_bin", "../../up", "up"),
        ("log_bin_index", "/elsewhere/x.index", "x.index"),
        ("loose_general_log_file", "/var/log/all.log", "all.log"),
        ("slow_query_log_file", "sub/slow.log", "slow.log"),
        ("relay_log", "/elsewhere/", "elsewhere"),
        ("relay_log", "/", ""),
        ("relay_log", "..", ""),
        ("server_audit_file_path", "/var/log/audit.log", "audit.log"),
        ("innodb_data_file_path", "ibdata1:12M:autoextend", "ibdata1:12M:autoextend"),
        ("innodb_data_file_path", "/a/ib1:10M;../ib2:10M:autoextend", "ib1:10M;ib2:10M:autoextend"),
        ("innodb_temp_data_file_path", "../ibtmp1:12M:autoextend:max:1G", "ibtmp1:12M:autoextend:max:1G"),
        ("innodb_data_home_dir", "/data", None),
        ("innodb_undo_directory", "sub", None),
        ("tmpdir", "/a:/b", None),
        ("loose_tmpdir", "x", None),
        ("wsrep_notify_cmd", "/bin/notify", None),
        ("wsrep_provider_gcache_dir", "/data", None),
        ("init_slave", "SET GLOBAL general_log_file = CONCAT(CHAR(47), 'x')", None),
        ("wsrep_provider_options", "gcache.dir=/data; gcache.size=1G", "gcache.size=1G"),
        ("wsrep_provider_options", "gcache.dir=/data;gcache.name=../x;base_dir=y", None),
        ("wsrep_provider_options", "gcs.fc_limit = 5; ", "gcs.fc_limit = 5; "),
        ("init_connect", "SET a = 1 / 2", None),
        ("init_connect", "SET autocommit=0", None),
        ("performance_schema_instrument", "wait/synch/%=ON", "wait/synch/%=ON"),
        ("ft_boolean_syntax", '+ -><()~*:""&|', '+ -><()~*:""&|'),
        ("innodb_buffer_pool_size", "1G", "1G"),
    ],
)
def test_every_file_stays_in_the_data_directory(name, value, kept):
    """A file keeps the last part of its path; directories, and files that are only read, are left out (None)."""
    assert path_options.inside(name, value) == kept
    assert kept is None or path_options.inside(name, kept) == kept


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("some_new_option", "/elsewhere/x", "the value looks like a path"),
        ("some_new_option", "..", "looks like a path"),
        ("log_b", "~/x", "looks like a path"),
        ("plugin_load_add", "/tmp/evil.so", "looks like a path"),
        ("general_log_file", "/x/;rm", "is not a plain file name"),
        ("general_log_file", "~root", "is not a plain file name"),
        ("innodb_data_file_path", "/dev/sdb1:5Gnewraw", "names a raw device"),
        ("innodb_data_file_path", "ibdata1:5Graw", "names a raw device"),
        ("innodb_data_file_path", "/a/ibdata1:1G;/b/ibdata1:1G", "two files have one name"),
        ("innodb_data_file_path", "..:12M", "is not FILE:SIZE"),
        ("innodb_data_file_path", "ibdata1:12M:/x", "is not FILE:SIZE"),
        ("wsrep_provider_options", "new.file=/elsewhere", "new.file=/elsewhere looks like a path"),
    ],
)
def test_a_path_that_cannot_stay_inside_is_refused(name, value, why):
    """Raw devices, two files of one name, strange names, and paths in options that are not known to name a file."""
    with pytest.raises(ConfigError, match=re.escape(why)):
        path_options.inside(name, value)


@pytest.mark.parametrize(
    "value", ["1\ngeneral_log_file=/elsewhere", "1\r", "a\tb", "a\x00b", "a\x7f", "x" * 4100, "\udcff"]
)
def test_a_value_that_is_not_one_line_is_refused(value):
    """A newline would smuggle another option past the checks, and so would a line longer than servers read at once."""
    with pytest.raises(ConfigError, match=r"^option sql_mode"):
        path_options.check_text("sql_mode", value)


@pytest.mark.parametrize("name", ["", "!include", "a\nb", "[mysqld]", "a=b", "a b", "#a", "ä", "a/b"])
def test_a_strange_name_is_refused(name):
    """A name of other characters could begin a section, a comment or an include."""
    with pytest.raises(ConfigError, match="the name of an option has only letters, digits"):
        path_options.check_text(name, "1")


@given(st.from_regex(r"[a-z0-9_][a-z0-9_.]*", fullmatch=True), st.text(max_size=60))
def test_what_is_written_is_read_as_the_same(tmp_path_factory, name, value):
    """Quotes, backslashes, ``#`` and spaces in a value come back as they were, and nothing else does."""
    try:
        path_options.check_text(name, value)
    except ConfigError:
        return
    path = tmp_path_factory.getbasetemp() / "written.cnf"
    path.write_bytes(f"[mysqld]\n{path_options.cnf_line(name, value)}\n".encode())

    (entry,) = read(path).entries
    assert (entry.name, entry.value) == (name, {"": None, "''": ""}.get(value, value))


@pytest.mark.parametrize("value", ["Ġ", "à", "\u00a0x", "x\u0085", " x", "x\u2003"])
def test_a_value_that_ends_like_a_space_is_quoted(tmp_path, value):
    """Servers read bytes as Latin-1, where A0 is a space: it is also the last byte of letters in UTF-8."""
    path = tmp_path / "written.cnf"
    path.write_bytes(f"[mysqld]\n{path_options.cnf_line('sql_mode', value)}\n".encode())

    (entry,) = read(path).entries
    assert entry.value == value


def test_the_last_check_names_the_option_and_the_way_out():
    """``require_inside`` accepts only what would not be changed."""
    path_options.require_inside({"log_bin": "binlog", "innodb_buffer_pool_size": "1G"})

    with pytest.raises(ConfigError, match=r"^option log_bin='/else/binlog' names files, .*; use 'binlog'$"):
        path_options.require_inside({"log_bin": "/else/binlog"})
    with pytest.raises(ConfigError, match=r"; leave it out$"):
        path_options.require_inside({"innodb_undo_directory": "sub"})


def test_what_is_moved_or_left_out_is_said():
    """One line for each option whose value is not the given one."""
    options, lines = path_options.move_inside(
        {"log_bin": "/else/binlog", "innodb_undo_directory": "/else", "sync_binlog": "1"}
    )

    assert options == {"log_bin": "binlog", "sync_binlog": "1"}
    moved, left_out = lines
    assert moved.startswith("log_bin=/else/binlog becomes binlog: ")
    assert left_out.startswith("innodb_undo_directory=/else is left out: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("general_log_file", "ibdata1"),
        ("general_log_file", "/var/log/IBDATA1"),
        ("log_bin", "ibdata1"),
        ("slow_query_log_file", "ib_logfile0"),
        ("slow_query_log_file", "mysql.ibd"),
        ("slow_query_log_file", "aria_log_control"),
        ("relay_log", "grastate.dat"),
        ("server_audit_file_path", "undo001"),
        ("innodb_buffer_pool_filename", "ibdata1"),
        ("innodb_temp_data_file_path", "ibdata1:12M:autoextend"),
        ("innodb_data_file_path", "grastate.dat:12M"),
        ("general_log_file", "binlog.000001"),
        ("general_log_file", "mysql"),
        ("loose_general_log_file", "auto.cnf"),
    ],
)
def test_no_option_names_a_file_of_the_servers_own(name, value):
    """A log in the file of a table or of the cluster's state would destroy it."""
    with pytest.raises(ConfigError, match="the server itself has a file or directory "):
        path_options.inside(name, value)


@pytest.mark.parametrize(
    ("topology", "nodes", "release"),
    [("galera", 1, "mariadb:10.11"), ("async_replication", 2, "mariadb:11.8"), ("async_replication", 2, "mysql:9.7")],
)
def test_every_file_of_a_running_server_is_known_as_its_own(briefly, topology, nodes, release):
    """Tables, logs, positions and state of each node, before any option of a user's."""
    cluster = briefly(topology, nodes, find.find(release))
    names = {file.name for node in cluster.nodes for file in Path(node.data).iterdir() if file.name[0] not in "#."}

    assert len(names) > 5
    assert {name for name in names if not path_options.OWN_FILES.fullmatch(name.lower())} == set()


@pytest.mark.parametrize(
    "name", ["x.sync_binlog", "loose_x.skip_grant_tables", "x.loose_key_buffer_size", "a.b.key_buffer_size"]
)
def test_only_variables_of_key_caches_have_names_with_a_dot(name):
    """A server of MariaDB reads x.sync_binlog as sync_binlog."""
    with pytest.raises(ConfigError, match=r"such as hot\.key_buffer_size"):
        path_options.check_text(name, "1")
    path_options.check_text("hot.key_buffer_size", "1M")


@pytest.mark.parametrize("release", ["mariadb:10.5", "mariadb:10.11", "mariadb:11.8", "mysql:9.7"])
def test_every_option_of_a_release_that_names_a_file_is_in_the_table(release, provisioner):
    """By its name, or by a default value that is a path: the release's own --help lists both."""
    found = find.find(release)
    (host,) = provisioner.acquire(ClusterSpec("standalone", release=found.release_name, name="help"))
    text = help_text(found, host, "--no-defaults").stdout
    provisioner.give_back([host])
    defaults = values(text)
    words = option_words(text) | defaults.keys()
    naming = {name for name in words if NAMES_A_FILE.search(name) and not NO_FILE_EITHER.search(name)}
    naming |= {
        name for name, value in defaults.items() if "/" in value or re.search(r"\.(log|pem|sock|info|cnf)$", value)
    }

    assert len(defaults) > 400
    assert {"datadir", "general_log_file", "tmpdir", "log_bin", "innodb_undo_directory"} <= words
    known = FILES | FILE_LISTS | LEFT_OUT | NO_PATH | OURS | NO_FILE | {LIST}
    assert [name for name in sorted(naming - known) if not of_host(name)] == []

"""Messages about my.cnf files, options and servers, as users read them."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.servers import cnf_file, path_options
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers.cnf_judge import judge_file
from pytest_dbcluster.clusters.servers.connection import NoAnswer, SQLError
from pytest_dbcluster.clusters.servers.data_template import Template, Variable
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import NodeStopped
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProcess
from pytest_dbcluster.releases.release import Release
from tests.support import golden

UNREADABLE = {
    "an option has no section": "a = 1\n",
    "an option has no name": "[mysqld]\n = 1\n",
    "a section is open": "[mysqld\na = 1\n",
    "a file has no server options": "[client]\nport = 1\n!includedir /etc/mysql/conf.d\n",
    "a file includes itself": "[mysqld]\n!include my.cnf\n",
    "an include names nothing": "[mysqld]\n!include  \n",
    "a line is too long": "[mysqld]\na = " + "x" * 4100,
    "a file is a program": "[mysqld]\na = \0",
}
REFUSED = (
    "[mysqld]\nquery_cache_size=64M\nexpire_logs_days=7\ninnodb_flush_log_at_trx_comit=2\nset-variable=key_buffer=16M\n"
    "made_up=/elsewhere\nplugin_load_add=none.so\nbinlog_row_image=SMALL\ninnodb_buffer_pool=1G\n"
)
ACCEPTED = "[mysqld]\nport=1\nlog_bin=/x/bin\nloose_made_up=1\n[mariadb]\nb=1\n"


def test_messages_about_a_my_cnf(tmp_path, mysql, provisioner):
    """They have the file, the line, what is wrong and what to write; those of a release come from its own programs."""
    path = tmp_path / "my.cnf"

    def judge(text):
        path.write_text(text)
        return judge_file(cnf_file.read(path), mysql, provisioner)

    seen = {title: golden.message_of(judge, text) for title, text in UNREADABLE.items()}
    seen["a file is a directory"] = golden.message_of(cnf_file.read, tmp_path)
    seen["a file is missing"] = golden.message_of(cnf_file.read, tmp_path / "site.cnf")
    seen["the root is a file"] = golden.message_of(cnf_file.read, path, path)
    seen["lines that a release does not accept"] = golden.message_of(judge, REFUSED)
    seen["lines about an accepted file"] = "\n".join(judge(ACCEPTED).lines)

    golden.compare("my_cnf", seen, {tmp_path: "/directory"})


NEW = Release("mariadb:10.11", "mariadb", "10.11.19", Path("bin"))
OLD = Release("mariadb:10.5", "mariadb", "10.5.23", Path("bin"))


def variable(name, kind, minimum="", maximum="", choices=()):
    """A variable that a running server can change."""
    return Variable(name, "", False, kind, minimum, maximum, choices, "GLOBAL")


KNOWN = {
    one.name: one
    for one in (
        variable("innodb_flush_log_at_trx_commit", "BIGINT UNSIGNED", "0", "3"),
        variable("innodb_buffer_pool_size", "BIGINT UNSIGNED", "2097152", str(2**63)),
        variable("binlog_row_image", "ENUM", choices=("MINIMAL", "NOBLOB", "FULL")),
        variable("innodb_doublewrite", "BOOLEAN"),
    )
}
FIT = Template(Path(), "", KNOWN, frozenset({"binlog_format", "skip_name_resolve"}))
OPTIONS = {
    "a misspelt option": ("innodb_flush_log_at_trx_comit", "2"),
    "an unknown option": ("nothing_like_it", "2"),
    "an option of another vendor": ("innodb_dedicated_server", "ON"),
    "an option that we set": ("datadir", "/data"),
    "an option that rejects clients": ("skip_networking", "ON"),
    "a number out of range": ("innodb_flush_log_at_trx_commit", "4"),
    "a fraction": ("innodb_buffer_pool_size", "1.5G"),
    "a choice": ("binlog_row_image", "SMALL"),
    "a truth value": ("innodb_doublewrite", "maybe"),
    "a name with spaces": ("a b", "1"),
    "a name with a dot": ("x.sync_binlog", "1"),
    "a value with a line break": ("sql_mode", "a\nport=1"),
    "a value that is not UTF-8": ("sql_mode", "\udcff"),
    "a long value": ("sql_mode", "x" * 4100),
}
PATHS = {
    "a path in an unknown option": ("some_new_option", "/elsewhere/x"),
    "a path in a provider option": ("wsrep_provider_options", "new.file=/elsewhere"),
    "a path in a known option": ("log_bin", "/elsewhere/binlog"),
    "a directory": ("innodb_undo_directory", "/elsewhere"),
    "a file of the server": ("general_log_file", "ibdata1"),
    "a strange file name": ("general_log_file", "/x/;rm"),
    "a raw device": ("innodb_data_file_path", "/dev/sdb1:5Gnewraw"),
    "two files with one name": ("innodb_data_file_path", "/a/ibdata1:1G;/b/ibdata1:1G"),
    "a file without a size": ("innodb_data_file_path", "..:12M"),
}


def test_messages_about_options():
    """They have the option, its value, what is wrong and what to write."""
    check = functools.partial(opts.check, variables=KNOWN, words=FIT.words, release=NEW)
    seen = {title: golden.message_of(check, dict([option])) for title, option in OPTIONS.items()}
    seen |= {title: golden.message_of(path_options.require_inside, dict([option])) for title, option in PATHS.items()}
    seen["moved and left out"] = "\n".join(
        path_options.move_inside({"log_bin": "/elsewhere/binlog", "innodb_undo_directory": "/elsewhere"})[1]
    )
    seen["behaviour that is fixed otherwise"] = golden.message_of(
        opts.fit, {"innodb_snapshot_isolation": "ON"}, FIT, OLD
    )
    seen["behaviour that is fixed as asked"] = "\n".join(opts.fit({"innodb_snapshot_isolation": "OFF"}, FIT, OLD)[1])
    seen["a value that the server changed"] = "\n".join(opts.adjustments({"a": "1"}, {"a": "2"}, NEW.name))

    golden.compare("options", seen)


@pytest.fixture
def node(mariadb):
    """A node on a fake host, with an error log."""
    host = FakeHost()
    host.files["/fake/error.log"] = b"0 [Note] started\n0 [ERROR] no space left\n"
    return Node("node1", host, mariadb, 3306, "secret")


def test_messages_about_a_server(node):
    """They have the node, what it did, its log or the statement."""
    seen = {}
    for title, status in {"killed": -9, "ended with an error": 1}.items():
        node.process = FakeProcess(7, ends=status)
        seen[title] = golden.message_of(node.alive)
    seen["stopped"] = str(NodeStopped("node1"))
    seen["a statement fails"] = str(SQLError("node1", "SELECT x", 1054, "Unknown column 'x' in 'SELECT'"))
    seen["a statement has no answer"] = str(NoAnswer("node1", "select 1", 3024, 2.0))

    golden.compare("servers", seen)

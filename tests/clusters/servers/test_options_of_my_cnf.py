"""my.cnf files: how they are read, and which of several lies over which."""

from __future__ import annotations

import re

import pytest

from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec


@pytest.fixture
def cnf(tmp_path):
    """Write a my.cnf and read it."""

    def read(text, product="mariadb"):
        path = tmp_path / "some.cnf"
        path.write_text(text)
        return opts.of_server(product, opts.read_cnf(path), "some.cnf")

    return read


def test_the_sections_of_a_vendors_servers_are_read(cnf):
    """Only the vendor's server sections are read; skipped sections of other vendors are named."""
    text = "[client]\nport=1\n[mysqld]\na=1\n[mariadb]\nb=2\n[galera]\nc=3\nd=4\n"

    assert cnf(text) == ({"a": "1", "b": "2", "c": "3", "d": "4"}, [])
    assert cnf(text, "mysql") == (
        {"a": "1"},
        ["mysql servers do not read [mariadb] (b) and [galera] (c, d) of some.cnf, only [mysqld] and [server]"],
    )


def test_a_section_without_options_is_not_worth_a_word(cnf):
    """A section without options is not reported as skipped."""
    assert cnf("[mysqld]\na=1\n[mariadb]\n", "mysql") == ({"a": "1"}, [])


def test_a_file_for_another_vendor_alone_sets_nothing(cnf):
    """That is no error: one file may serve clusters of both vendors."""
    assert cnf("[mariadb]\nb=2\n", "mysql")[0] == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("innodb-io-capacity = 200", {"innodb_io_capacity": "200"}),
        ("  innodb_io_capacity=200   # many", {"innodb_io_capacity": "200"}),
        ("skip-name-resolve", {"skip_name_resolve": ""}),
        ("sql_mode = 'A,B'", {"sql_mode": "A,B"}),
        ('init_connect = "SET a = 1"', {"init_connect": "SET a = 1"}),
        ("wsrep_provider_options = a=1;b=2", {"wsrep_provider_options": "a=1;b=2"}),
        ("datadir = %h/x", {"datadir": "%h/x"}),
        ("; a = 1\n# b = 2\nc = 3", {"c": "3"}),
        ("a = 1\na = 2", {"a": "2"}),
        ("a = 1\n    b = 2", {"a": "1", "b": "2"}),
        ("x = 80 %", {"x": "80 %"}),
    ],
)
def test_lines_are_read_as_the_server_reads_them(cnf, line, found):
    """Spelling, comments, quotes, options without a value, indentation, repetition."""
    assert cnf(f"[mysqld]\n{line}\n") == (found, [])


def test_a_fragment_that_does_not_exist_lists_those_that_do(tmp_path):
    """The error names the file and its neighbours."""
    (tmp_path / "flush_2.cnf").write_text("[mysqld]\n")
    (tmp_path / "default.cnf").write_text("[mysqld]\n")

    with pytest.raises(ConfigError) as caught:
        opts.read_cnf(tmp_path / "flush2.cnf")
    assert str(caught.value) == f"there is no {tmp_path}/flush2.cnf; its directory has: default, flush_2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\n", "is no my.cnf: File contains no section headers."),
        ("[mysqld\na = 1\n", "is no my.cnf: "),
        ("[client]\nport = 1\n", "has no server options; put them into a section [mysqld], [server], [mariadb],"),
        ("", "has no server options; put them into a section "),
        ("[mysqld]\n!includedir /etc/x\n", ": '!includedir /etc/x' is not followed; put the options into this file"),
    ],
)
def test_a_file_that_is_no_my_cnf_is_refused(cnf, tmp_path, text, words):
    """The error names the file and what is wrong with it."""
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        cnf(text)

    assert str(caught.value).startswith(str(tmp_path / "some.cnf"))


def test_a_directory_or_a_program_is_no_my_cnf(tmp_path):
    """What cannot be read as text is refused in the same way."""
    (tmp_path / "binary.cnf").write_bytes(b"\x7fELF\xff\xfe")

    with pytest.raises(ConfigError, match=r"^.*binary\.cnf is no my\.cnf: "):
        opts.read_cnf(tmp_path / "binary.cnf")
    with pytest.raises(ConfigError, match=r" is no my\.cnf: Is a directory$"):
        opts.read_cnf(tmp_path)


def test_what_is_nearer_to_the_test_wins(tmp_path):
    """Lowest --db-cnf, then the fragments in order, then the spec itself; overridden lines are named."""
    (tmp_path / "one.cnf").write_text("[mysqld]\na = 1\nb = 1\nc = 1\n")
    (tmp_path / "two.cnf").write_text("[mysqld]\nb = 2\nc = 2\n")
    spec = ClusterSpec("galera").with_cnf("one").with_cnf("two").with_options(c=3).named("mine")
    below = {"a": "1", "b": "0", "d": "0"}

    found, lines = opts.resolve(spec, "mariadb", fragments=tmp_path, below={"mysqld": below}, memory=2**30)
    assert found == {"a": "1", "b": "2", "c": "3", "d": "0"}
    assert lines == ["mine: b = 2 overrides 0 of --db-cnf"]


def test_every_file_is_read_as_the_vendors_servers_read_it(tmp_path):
    """--db-cnf and the fragments; what is skipped of each is named."""
    (tmp_path / "tuned.cnf").write_text("[mysqld]\na = 1\n[mariadb]\nb = 1\n")
    spec = ClusterSpec("standalone").with_cnf("tuned")
    below = {"server": {"a": "0"}, "galera": {"c": "0"}}

    assert opts.resolve(spec, "mysql", fragments=tmp_path, below=below, memory=2**30) == (
        {"a": "1"},
        [
            "mysql servers do not read [galera] (c) of --db-cnf, only [mysqld] and [server]",
            "mysql servers do not read [mariadb] (b) of tuned.cnf, only [mysqld] and [server]",
            "tuned: a = 1 overrides 0 of --db-cnf",
        ],
    )


@pytest.mark.parametrize(
    ("value", "found"), [("80 %", "819M"), ("12.5%", "128M"), ("80", "80"), ("1G", "1G"), ("80 % of it", "80 % of it")]
)
def test_percent_is_of_the_nodes_share_of_memory(value, found):
    """In whole MiB; other values stay as they are."""
    assert opts.share(value, 2**30) == found

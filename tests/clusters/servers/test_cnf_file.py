"""my.cnf files: how each line is read, which files are followed, and what is refused with file and line."""

from __future__ import annotations

import os
import re

import pytest

from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.errors import ConfigError
from tests.support.facts import missing


def entries(path, root=None):
    """The options of a file, as (section, name, value)."""
    return [(entry.section, entry.name, entry.value) for entry in cnf_file.read(path, root).entries]


@pytest.fixture
def written(tmp_path):
    """Write files by name; the first is the my.cnf, whose path is returned."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_cnf", ".cnf")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / next(iter(files)).replace("__", "/").replace("_cnf", ".cnf")

    return write


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("innodb-io-capacity = 200", "innodb-io-capacity", "200"),
        ("  a=200   # many", "a", "200"),
        ("a = 'x # y' # z", "a", "x # y"),
        ("a = x#y", "a", "x"),
        ("a = it's # no comment's here", "a", "it's # no comment's here"),
        (r"a = 'it\'s # in' # out", "a", "it's # in"),
        ("skip-name-resolve", "skip-name-resolve", None),
        ("skip-name-resolve  # why", "skip-name-resolve", None),
        ("a =", "a", ""),
        ("a = ''", "a", ""),
        ("a = '", "a", "'"),
        ("a = \"SET x = 'y'\"", "a", "SET x = 'y'"),
        ("a = b=c;d=e", "a", "b=c;d=e"),
        (r"a = one\ntwo\sthree\\four\xfive", "a", "one\ntwo three\\four\\xfive"),
        ("a = end\\", "a", "end\\"),
        ("a = 80 %\r", "a", "80 %"),
        ("\ta = b", "a", "b"),
        ("a = Größe", "a", "Größe"),
    ],
)
def test_a_line_is_read_as_servers_read_it(written, line, name, value):
    """Comments begin at a ``#`` outside of quotes; quotes and escapes are taken off; a name may have no value."""
    assert entries(written(my_cnf=f"[mysqld]\n{line}\n")) == [("mysqld", name, value)]


def test_options_stand_in_the_order_of_the_file(written):
    """A section may come twice; every option keeps its section, its file and its line."""
    path = written(my_cnf="# x\n[mysqld]\na=1\n; y\n[client]\nb=2\n\n[ mysqld ] z\nc\n[mysqld]\na=3\n")
    found = cnf_file.read(path)

    assert [(entry.section, entry.argument, entry.where) for entry in found.entries] == [
        ("mysqld", "--a=1", "my.cnf:3"),
        ("client", "--b=2", "my.cnf:6"),
        (" mysqld", "--c", "my.cnf:9"),
        ("mysqld", "--a=3", "my.cnf:11"),
    ]


def test_includes_are_read_where_they_stand(written):
    """Relative ones beside the file that includes them; of a directory the .cnf files, by name; the section stays."""
    path = written(
        my_cnf="[mysqld]\na=1\n!include more/one.cnf\n!includedir more/conf.d\nz=1\n",
        more__one_cnf="[mysqld]\nb=1\n!include two.cnf\n",
        more__two_cnf="[server]\nc=1\n",
    )
    directory = path.parent / "more" / "conf.d"
    directory.mkdir()
    for name, text in {"20.cnf": "[mysqld]\ne=1\n", "10.cnf": "[mysqld]\nd=1\n", "x.cnf~": "?", "README": "?"}.items():
        (directory / name).write_text(text)

    assert [(entry.argument, entry.where) for entry in cnf_file.read(path).entries] == [
        ("--a=1", "my.cnf:2"),
        ("--b=1", "more/one.cnf:2"),
        ("--c=1", "more/two.cnf:2"),
        ("--d=1", "more/conf.d/10.cnf:2"),
        ("--e=1", "more/conf.d/20.cnf:2"),
        ("--z=1", "my.cnf:5"),
    ]


def test_absolute_includes_lie_below_the_root_that_the_user_names(written, tmp_path):
    """Never in this machine's own directories; links below the root lead to files below the root."""
    path = written(
        root__etc__mysql__my_cnf="[mysqld]\na=1\n!include /etc/more.cnf\n!includedir /etc/mysql/conf.d/\n",
        root__etc__real_cnf="[mysqld]\nb=1\n",
        root__etc__mysql__conf__x_cnf="[mysqld]\nc=1\n",
    )
    root = tmp_path / "root"
    (root / "etc/more.cnf").symlink_to("/etc/real.cnf")
    (root / "etc/mysql/conf.d").symlink_to("../../../../../etc/mysql/conf")

    assert [argument for *_, argument in entries(path, root)] == ["1", "1", "1"]
    missing = cnf_file.read(path).missing
    assert len(missing) == 2
    assert missing[0].startswith("my.cnf:3: !include /etc/more.cnf was not read: ")
    assert missing[0].endswith("--db-cnf-root")


def test_no_file_of_this_machine_is_read(written, tmp_path):
    """Not by ``..``, not by a link in the directory of the file, not by a link below the root."""
    (tmp_path / "secret.cnf").write_text("[mysqld]\nsecret=1\n")
    path = written(at__etc__my_cnf="[mysqld]\n!include ../../secret.cnf\n!include link.cnf\n!includedir conf.d\na=1\n")
    (path.parent / "link.cnf").symlink_to(tmp_path / "secret.cnf")
    (path.parent / "conf.d").mkdir()
    (path.parent / "conf.d/link.cnf").symlink_to(tmp_path / "secret.cnf")

    for root in (None, tmp_path / "at"):
        found = cnf_file.read(path, root)
        assert [entry.name for entry in found.entries] == ["a"]
        assert len(found.missing) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\n", "my.cnf:1: 'a = 1' is before the first [section]"),
        ("[mysqld]\n = 1\n", "my.cnf:2: '= 1' has no name before the ="),
        ("\n[mysqld\na = 1\n", "my.cnf:2: '[mysqld' has no ]; write [section]"),
        ("[client]\nport = 1\n", "has no server options; put them in a section [mysqld]"),
        ("", "has no server options; put them in a section [mysqld]"),
        ("[mysqld]\n!include my.cnf\n", "my.cnf:2: !include my.cnf includes my.cnf again"),
        ("[mysqld]\n!includedir .\n", "my.cnf:2: !includedir . includes my.cnf again"),
        ("[mysqld]\n!include  \n", "my.cnf:2: !include names nothing"),
        ("[mysqld]\na = " + "x" * 4100, "my.cnf:2: the line has 4104 bytes, but servers read at most 4000"),
        ("[mysqld]\na = \0", "is not a my.cnf: it has a byte 0"),
    ],
)
def test_a_file_that_is_not_a_my_cnf_is_refused(written, text, words):
    """The error names the file and what is wrong with it."""
    with pytest.raises(ConfigError, match=re.escape(words)):
        cnf_file.read(written(my_cnf=text))


def test_what_is_no_file_is_refused(tmp_path):
    """A directory, a pipe and a huge file, before they are read; a missing file lists its neighbours."""
    os.mkfifo(tmp_path / "pipe.cnf")
    (tmp_path / "huge.cnf").write_bytes(b"#" * (2**20 + 1))

    with pytest.raises(ConfigError, match=r" is a directory; "):
        cnf_file.read(tmp_path)
    with pytest.raises(ConfigError, match=r"pipe\.cnf is not a regular file; "):
        cnf_file.read(tmp_path / "pipe.cnf")
    with pytest.raises(ConfigError, match=r"huge\.cnf is not a my\.cnf: it has more than 1048576 bytes$"):
        cnf_file.read(tmp_path / "huge.cnf")
    with pytest.raises(ConfigError) as caught:
        cnf_file.read(tmp_path / "hug.cnf")
    assert missing(caught.value, f"there is no {tmp_path}/hug.cnf", "its directory", ": huge, pipe") == []
    with pytest.raises(ConfigError, match=r"/none is not a directory; give the directory"):
        cnf_file.read(tmp_path / "huge.cnf", tmp_path / "none")


def test_a_file_without_options_names_its_missing_includes(written):
    """A my.cnf of a distribution often has nothing else: the error says which files to bring."""
    with pytest.raises(ConfigError) as caught:
        cnf_file.read(written(my_cnf="!includedir /etc/mysql/conf.d/\n"))

    assert "my.cnf has no server options" in str(caught.value)
    assert "\n  my.cnf:1: !includedir /etc/mysql/conf.d/ was not read: " in str(caught.value)

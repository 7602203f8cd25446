"""The reader of my.cnf files against the my_print_defaults of both vendors: the same options in the same order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.clusters.servers.cnf_judge import judge_file
from pytest_dbcluster.errors import ConfigError

GROUPS = ("mysqld", "server", "mariadb", "mariadb-10.11", "mysqld-9.7")
# Characters and words that mean something in a my.cnf, often.
PIECES = st.sampled_from(
    [*"'\"\\#;=!&% \t[]/-_.,abnstrx019é\xa0\r\v\f", "\\n", "\\s", "\\\\", "\\'", '\\"', " # ", "='", " = "]
)
LINES = st.one_of(
    st.lists(PIECES, max_size=14)
    .map("".join)
    .filter(lambda line: not line.lstrip(cnf_file.SPACE).startswith(("!", "[", "="))),
    st.sampled_from(
        [*(f"[{group}]" for group in GROUPS), "[ mysqld]", "[mysqld ]", "[MYSQLD]", "[client] x", "[]", ""]
    ),
)
FILES = st.lists(LINES, max_size=50).map(lambda lines: "\n".join(["[mysqld]", *lines, ""]))


def printed(release, path):
    """What the release's own program reads."""
    show = ["--show"] if release.product == "mysql" else []
    program = release.program("my_print_defaults")
    done = subprocess.run([program, f"--defaults-file={path}", *show, *GROUPS], capture_output=True, check=True)
    return done.stdout


def ours(path):
    """The same from our reader."""
    groups = [entry for entry in cnf_file.read(path).entries if entry.section.lower() in GROUPS]
    return "".join(f"{entry.argument}\n" for entry in groups).encode(errors="surrogateescape")


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=FILES)
def test_made_up_files_are_read_as_the_server_reads_them(vendor, text, request, tmp_path):
    """Quotes, escapes, comments, spaces, sections: whatever a line looks like."""
    path = tmp_path / "my.cnf"
    path.write_bytes(text.encode())

    assert ours(path) == printed(request.getfixturevalue(vendor), path)


def files_of_the_project():
    """Every my.cnf in the repository."""
    root = Path(__file__).parents[3]
    return sorted((root / "fixtures" / "mycnf").glob("*.cnf"))


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_files_of_the_project_are_read_as_the_server_reads_them(vendor, request):
    """The fragments of fixtures/mycnf."""
    release = request.getfixturevalue(vendor)
    files = files_of_the_project()

    assert len(files) > 5
    for path in files:
        assert ours(path) == printed(release, path)


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_included_files_are_read_as_the_server_reads_them(vendor, request, tmp_path):
    """The same files of a directory, in the same order, and the same section after an include."""
    release = request.getfixturevalue(vendor)
    directory = tmp_path / "conf.d"
    directory.mkdir()
    for name in (
        "b.cnf",
        "a.cnf",
        "Z.cnf",
        "9.cnf",
        "10.cnf",
        ".cnf",
        ".hidden.cnf",
        "é.cnf",
        "x.cnf.bak",
        "y",
        "z.CNF",
    ):
        (directory / name).write_text(f"[mysqld]\nfrom = {name}\n[client]\nno\n")
    (tmp_path / "one.inc").write_text("[server]\none\n")
    path = tmp_path / "my.cnf"
    path.write_text(
        f"[mysqld]\na\n!include {tmp_path}/one.inc\nb\n! includedir\t{directory}/ \n"
        "!includedirs x\n!includenothing\nc\n"
    )

    read = cnf_file.read(path, Path("/"))
    assert b"".join(f"{e.argument}\n".encode() for e in read.entries if e.section != "client") == printed(release, path)


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_name_with_two_dots_is_refused_where_the_server_does_not_read_it(vendor, request, tmp_path, provisioner):
    """Or read by both: in no case are options used that the server would not use."""
    release = request.getfixturevalue(vendor)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/50.server.cnf").write_text("[mysqld]\nsync_binlog=1\n")
    path = tmp_path / "my.cnf"
    path.write_text("[mysqld]\n!includedir conf.d\n")

    if printed(release, _absolute(path)):
        assert judge_file(cnf_file.read(path), release, provisioner).options == {"sync_binlog": "1"}
    else:
        with pytest.raises(ConfigError, match="reads option 1 as no more options"):
            judge_file(cnf_file.read(path), release, provisioner)


def _absolute(path):
    target = path.with_name("absolute.cnf")
    target.write_text(path.read_text().replace("conf.d", f"{path.parent}/conf.d"))
    return target

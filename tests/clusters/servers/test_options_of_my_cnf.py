"""my.cnf files and a spec's own options: which of several lies over which, and what is said about it."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers.cnf_judge import CnfJudgement
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import normal_option
from pytest_dbcluster.spec import ClusterSpec
from tests.support.facts import missing


def judge(cnf):
    """A release that takes every option of [mysqld] as it is, and says so."""
    options = {normal_option(entry.name): entry.value or "" for entry in cnf.entries if entry.section == "mysqld"}
    return CnfJudgement(options, (), (), (f"{cnf.name} was judged",), {}, cnf.name)


@pytest.fixture
def resolve(tmp_path):
    """``resolve(spec, below="a = 1")``: the joined options, with fragments from the test's directory."""

    def resolve(spec, below="", **more):
        (tmp_path / "site.cnf").write_text(f"[mysqld]\n{below}\n")
        site = cnf_file.read(tmp_path / "site.cnf") if below else None
        return opts.resolve(spec, judge, fragments=tmp_path, below=site, memory=2**30, **more)

    return resolve


def test_what_is_nearer_to_the_test_wins(resolve, tmp_path):
    """Lowest --db-cnf, then the files in order, then the spec itself; overridden lines are named."""
    (tmp_path / "one.cnf").write_text("[mysqld]\na = 1\nb = 1\nc = 1\n")
    (tmp_path / "two.cnf").write_text("[mysqld]\nb = 2\nc = 2\n")
    spec = ClusterSpec("galera").with_cnf("one").with_cnf(tmp_path / "two.cnf").with_options(c=3).named("mine")

    found = resolve(spec, "a = 1\nb = 0\nd = 0")
    assert found.options == {"a": "1", "b": "2", "c": "3", "d": "0"}
    assert found.common == {"a": "1", "b": "0", "d": "0"}
    assert found.judged == {"a", "b", "d"}
    *judged, overridden = found.lines
    assert judged == ["site.cnf was judged", "one.cnf was judged", "two.cnf was judged"]
    assert missing(overridden, "mine: ", "b = 2 overrides 0", "--db-cnf") == []


def test_another_spelling_of_an_option_is_overridden_too(resolve, tmp_path):
    """Of ``x`` and ``skip_x`` only the nearer one is left, because a server takes the last of them."""
    (tmp_path / "one.cnf").write_text("[mysqld]\nskip_innodb_doublewrite\n")
    spec = ClusterSpec("standalone").with_cnf("one").with_options(innodb_doublewrite=True)

    assert resolve(spec, "disable_innodb_doublewrite").options == {"innodb_doublewrite": "ON"}


def test_plugins_of_several_files_add_up(resolve, tmp_path):
    """As repeated plugin_load_add do in one file."""
    (tmp_path / "one.cnf").write_text("[mysqld]\nplugin_load_add = a.so\n")

    assert resolve(ClusterSpec("standalone").with_cnf("one"), "plugin_load_add = b.so").options == {
        "plugin_load_add": "b.so;a.so"
    }


def test_paths_in_a_specs_own_options_stay_in_the_node(resolve):
    """They are moved or left out, and a line says so."""
    spec = ClusterSpec("standalone").with_options(log_bin="/else/bin", innodb_undo_directory="/else").named("mine")
    found = resolve(spec)

    assert found.options == {"log_bin": "bin"}
    left_out, moved = found.lines
    assert left_out.startswith("mine: innodb_undo_directory=/else is left out")
    assert moved.startswith("mine: log_bin=/else/bin becomes bin")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"datadir": "/else"}, "option 'datadir': pytest-dbcluster itself sets it"),
        ({"loose_tmpdir": "/else"}, "option 'loose_tmpdir': pytest-dbcluster itself sets it"),
        (
            {"sync_binlog": "1\nlog_bin=/else"},
            "option sync_binlog='1\\\\nlog_bin=/else': the value has a control character",
        ),
        ({"made_up": "/else"}, "option made_up='/else': the value looks like a path"),
    ],
)
def test_a_specs_own_option_that_could_do_harm_is_refused(resolve, options, words):
    """Before any server starts."""
    with pytest.raises(ConfigError, match=f"^{words}"):
        resolve(ClusterSpec("standalone").with_options(options))


def test_includes_are_looked_up_below_the_root(resolve, tmp_path):
    """Also those of a spec's own files."""
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/more.cnf").write_text("[mysqld]\nb = 1\n")
    (tmp_path / "one.cnf").write_text("[mysqld]\na = 1\n!include /etc/more.cnf\n")
    spec = ClusterSpec("standalone").with_cnf("one")

    assert resolve(spec, root=tmp_path / "root").options == {"a": "1", "b": "1"}
    assert resolve(spec).options == {"a": "1"}


@pytest.mark.parametrize(
    ("value", "found"), [("80 %", "819M"), ("12.5%", "128M"), ("80", "80"), ("1G", "1G"), ("80 % of it", "80 % of it")]
)
def test_percent_is_of_the_nodes_share_of_memory(value, found):
    """In whole MiB; other values stay as they are."""
    assert opts.share(value, 2**30) == found

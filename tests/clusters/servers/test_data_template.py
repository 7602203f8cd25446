"""Templates: made once for a release, whole or not at all, and what they say of the server."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
import types
from pathlib import Path

import pytest

from pytest_dbcluster.cli import cache as commands
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers import data_template as module
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.data_template import template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache
from tests.support.facts import missing


@pytest.fixture
def host(provisioner):
    """Hosts to make templates on, given back afterwards."""
    borrowed = []

    def host():
        borrowed.extend(provisioner.acquire(ClusterSpec("standalone", name="template")))
        return borrowed[-1]

    yield host
    provisioner.give_back(borrowed)


@pytest.fixture
def made(mariadb, host):
    """The template of the release, out of the shared cache when it is there."""
    return template(mariadb, host, {})


@pytest.fixture(scope="module")
def making(mariadb, provisioner, tmp_path_factory):
    """The first template of a cache, with pages of 8 KiB, beside temporary tables of another server.

    The server answers SELECT 1 before it reads tables; it then refuses with error 1047 for a moment.
    """
    (host,) = provisioner.acquire(ClusterSpec("standalone", name="template"))
    place, query = tmp_path_factory.mktemp("cache") / "pytest-dbcluster", Node.query
    theirs = [Path(tempfile.gettempdir(), f"#sql-temptable-{os.getpid()}-1-1.{end}") for end in ("MAI", "MAD")]
    found = types.SimpleNamespace(told=[], refusals=[], initial={"innodb_page_size": "8K"})

    def refused_at_first(node, statement):
        if "mysql." in statement and len(found.refusals) < 3:
            found.refusals.append(statement)
            raise SQLError("template", statement, 1047, "WSREP has not yet prepared node for application use")
        return query(node, statement)

    place.mkdir()
    (place / "releases").symlink_to(cache.releases())
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(place.parent))
            patch.setattr(Node, "query", refused_at_first)
            for file in theirs:
                file.touch()
            found.first = template(mariadb, lambda: host, found.initial, found.told.append)
            found.missing = [file for file in theirs if not file.exists()]
            found.again = template(mariadb, lambda: pytest.fail("it is there"), found.initial, found.told.append)
        yield found
    finally:
        for file in theirs:
            file.unlink(missing_ok=True)
        provisioner.give_back([host])


def test_a_template_is_made_once(mariadb, making):
    """The second time nothing is started; the account's password stays the same, and only its owner can read it."""
    first = making.first

    assert making.again == first
    (line,) = making.told
    assert missing(line, "making the data template", f"mariadb:10.11 {mariadb.version}") == []
    assert stat.S_IMODE(first.data.parent.stat().st_mode) == 0o700
    assert first.password not in repr(first)
    state = (first.data / "grastate.dat").read_text()
    assert "seqno:   -1" not in state
    assert not (first.data / "gvwstate.dat").exists()


def test_making_a_template_touches_no_file_of_another_server(making):
    """A MariaDB server that starts removes all temporary tables in its tmpdir, also those of a server beside it."""
    assert making.missing == []


def test_a_node_that_is_not_ready_yet_is_waited_for(making):
    """A Galera node that refuses to read its tables is asked again."""
    assert len(making.refusals) == 3
    assert making.first.data.is_dir()


def of(data):
    """A server that has ended, with its data."""
    return types.SimpleNamespace(data=str(data), host=FakeHost())


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("template.json", b"", "template.json is empty"),
        ("template.json", b'{"password": "ne', "template.json is not JSON"),
        ("data/ibdata1", b"x", "data/ibdata1 has 1 byte instead of 3"),
        ("data/ibdata1", b"xyz", "data/ibdata1 has other contents than when it was made"),
    ],
)
def test_a_damaged_template_is_made_again(tmp_path, monkeypatch, file, content, reason):
    """What is wrong is said; the damaged one stays under another name: ``dbcluster cache`` lists and removes it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data, made, told = tmp_path / "data", [], []

    def make(release, host, initial, place):
        made.append(place)
        data.mkdir(exist_ok=True)
        (data / "ibdata1").write_bytes(b"abc")
        module._keep(of(data), place, {"password": f"secret {len(made)}", "variables": [], "words": []})

    monkeypatch.setattr(module, "_make", make)
    release = types.SimpleNamespace(name="mysql:9.7", product="mysql", version="9.7.0", key="9.7.0")
    first = template(release, lambda: None, {}, told.append)
    place = first.data.parent
    (place / file).write_bytes(content)
    again = template(release, lambda: None, {}, told.append)

    assert (first.password, again.password, len(made)) == ("secret 1", "secret 2", 2)
    assert (place / "data" / "ibdata1").read_bytes() == b"abc"
    [aside] = place.parent.glob(".damaged-*")
    assert told[1].startswith(f"{place} is damaged: {reason}.")
    assert f"{aside.name} (dbcluster cache lists it, dbcluster cache clean removes it)" in told[1]
    assert {one.name: one.holds for one in commands.list_entries()} == {
        f"templates/{place.name}": "",
        f"templates/{aside.name}": f"damaged: {reason}",
    }
    commands.clean([f"templates/{aside.name}"])
    assert [one.name for one in commands.list_entries()] == [f"templates/{place.name}"]


def test_the_second_holder_of_a_templates_lock_says_that_it_waits(tmp_path):
    """A removal waits while another process makes a template, and says so."""
    place, lines, inside = tmp_path / "templates" / "mariadb-1", [], threading.Event()

    def second():
        with module.lock(place, lambda line: (lines.append(line), inside.set())):
            lines.append("held")

    thread = threading.Thread(target=second)
    with module.lock(place, lines.append):
        thread.start()
        inside.wait(10)
        lines.append("given back")
    thread.join(10)

    assert lines[1:] == ["given back", "held"]
    facts = ("waiting for another process", "data template mariadb-1", "30 min at most (--db-wait)")
    assert missing(lines[0], *facts) == []


def test_half_a_template_is_never_seen(tmp_path, monkeypatch):
    """What a killed process left is swept away by the next one, and an error leaves nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data, place, stale = tmp_path / "data", cache.root() / "templates" / "mariadb-1", []

    def make():
        data.mkdir(exist_ok=True)
        (data / "ibdata1").touch()
        with module.lock(place, print):
            module._keep(of(data), place, {"password": "never told"})

    def fail(host, source, target):
        stale.append(Path(target).parent)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Host, "take_tree", fail)
        with pytest.raises(KeyboardInterrupt):
            make()
    assert not stale[0].exists()
    assert [path for path in place.parent.iterdir() if path.is_dir()] == []

    stale[0].mkdir()  # as if it had been killed instead
    make()
    assert [path for path in place.parent.iterdir() if path.is_dir()] == [place]


def test_a_template_that_is_being_made_is_no_entry_of_the_cache(tmp_path, monkeypatch):
    """It cannot be named for removal, and a whole one is listed at once; only its owner can read it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data, place = tmp_path / "data", cache.root() / "templates" / "mariadb-1"
    listed, take = [], Host.take_tree

    def taking(host, source, target):
        listed.append([one.name for one in commands.list_entries()])
        return take(host, source, target)

    monkeypatch.setattr(Host, "take_tree", taking)
    for _ in range(2):  # the second takes the place of the first
        data.mkdir()
        (data / "ibdata1").touch()
        with module.lock(place, print):
            module._keep(of(data), place, {"password": "never told"})
        listed.append([one.name for one in commands.list_entries()])

    assert listed == [[], ["templates/mariadb-1"], ["templates/mariadb-1"], ["templates/mariadb-1"]]
    assert [path.name for path in place.parent.iterdir() if path.is_dir()] == ["mariadb-1"]
    assert sorted(path.relative_to(place).as_posix() for path in place.rglob("*")) == [
        ".compared.json", ".files.json", "data", "data/ibdata1", "template.json",
    ]  # fmt: skip
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_template_is_read_before_it_can_be_removed(tmp_path, monkeypatch):
    """A removal that waits for the lock happens after that."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lock = module.lock

    @contextlib.contextmanager
    def then_removed(place, progress):
        with lock(place, progress):
            yield
        shutil.rmtree(place)

    def make(release, host, initial, place):
        place.mkdir()
        (place / "template.json").write_text('{"password": "never told", "variables": [], "words": ["mysqlx"]}')

    monkeypatch.setattr(module, "lock", then_removed)
    monkeypatch.setattr(module, "_make", make)
    release = types.SimpleNamespace(name="mysql:9.7", product="mysql", version="9.7.0", key="9.7.0")

    assert template(release, lambda: None, {}).words == {"mysqlx"}


def test_the_servers_own_list_is_kept(made):
    """Every variable with its kind, bounds and choices; options that are no variables are words."""
    commit = made.variables["innodb_flush_log_at_trx_commit"]

    assert (commit.minimum, commit.maximum, commit.read_only, commit.value) == ("0", "3", False, "1")
    assert made.variables["innodb_autoinc_lock_mode"].read_only
    assert "FULL" in made.variables["binlog_row_image"].choices
    assert {"skip_name_resolve", "innodb_io_capacity", "wsrep_slave_threads"} <= made.words


def test_the_list_of_mysql_has_its_replication_plugins(mysql, host):
    """What can be set while it runs was tried, because MySQL does not say; plugins that are there were loaded."""
    made = template(mysql, host, {})
    commit = made.variables["innodb_flush_log_at_trx_commit"]

    assert (commit.minimum, commit.maximum, commit.read_only, commit.value) == ("0", "2", False, "1")
    assert made.variables["innodb_page_size"].read_only
    assert {"group_replication_group_name", "rpl_semi_sync_source_timeout", "clone_max_concurrency"} <= set(
        made.variables
    )
    assert {"skip_name_resolve", "innodb_io_capacity", "mysqlx"} <= made.words


def test_servers_of_mysql_are_born_without_history(mysql, host, briefly):
    """Each copy gets its own server UUID, and no copy has transactions."""
    made = template(mysql, host, {})
    one, other = (briefly("standalone", 1, mysql, gtid_mode="ON", enforce_gtid_consistency="ON") for _ in range(2))
    said = [cluster.nodes[0].query("SELECT @@server_uuid, @@global.gtid_executed")[0] for cluster in (one, other)]

    assert [path.name for path in made.data.iterdir() if path.name.startswith(("auto.cnf", "binlog"))] == []
    assert said[0][0] != said[1][0]
    assert [executed for _, executed in said] == ["", ""]


def test_options_that_are_fixed_at_birth_select_another_template(mariadb, making):
    """The page size of a data directory cannot be changed later."""
    first = making.first

    assert first.variables["innodb_page_size"].value == "8192"
    assert [path for path in first.data.parents[1].iterdir() if path.is_dir()] == [first.data.parent]
    assert first.data.parent.name != module.directory_of(mariadb, {}).name


@pytest.mark.thorough
def test_options_that_are_fixed_at_birth_are_those_of_mysql_too(mysql, host, empty_templates):
    """Its installation program gets them, and the template is the only one of the cache."""
    made = template(mysql, host, {"innodb_page_size": "8K"})

    assert made.variables["innodb_page_size"].value == "8192"
    assert [path for path in empty_templates.iterdir() if path.is_dir()] == [made.data.parent]


def test_variables_that_leave_a_cluster_are_not_probed():
    """Each variable of MySQL's servers is set to itself, to see whether a running server may change it."""
    asked, words = [], dialect("pxc", "8.4.6")
    names = sorted([*words.galera.not_probed, "wsrep_applier_threads"])

    def query(statement):
        asked.append(statement)
        return [(name, "x", 0, "", "", "", "", "GLOBAL") for name in names] if statement == words.variables else []

    rows = module._variables(types.SimpleNamespace(dialect=words, query=query))

    assert asked[1:] == ["SET GLOBAL wsrep_applier_threads = @@global.wsrep_applier_threads"]
    assert {row["name"] for row in rows if row["read_only"]} == words.galera.not_probed

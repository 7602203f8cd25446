"""MySQL that was really fetched: what it has, and that it runs from wherever it lies."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxies.mysql_router.proxy import MySQLRouter
from pytest_dbcluster.clusters.proxies.mysql_router.proxy import router as router_of
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.clusters.topologies.standalone import Standalone
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import fetched, find, local_programs, sources
from pytest_dbcluster.releases.catalogue import MYSQL_PROGRAMS, Offer, Origin
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache
from tests.releases.test_apt import Archive
from tests.releases.test_fetched_mariadb import run
from tests.support.vendor_layouts import mysql_tarball
from tests.support.vendor_repository import SigningKey, VendorRepository

SERVER, CLIENT = "mysql-community-server-core", "mysql-community-client"
ROUTER = "mysql-router-community"
PLUGINS = {
    "group_replication": "group_replication.so",
    "rpl_semi_sync_source": "semisync_source.so",
    "rpl_semi_sync_replica": "semisync_replica.so",
    "clone": "mysql_clone.so",
}


def test_the_server_says_its_version(mysql):
    """The program runs on this host, and its version is the named one."""
    assert f"Ver {mysql.version}" in run(mysql.program("mysqld"), "--version")
    assert mysql.version.startswith("9.7.")


def test_every_path_of_it_exists(mysql):
    """Whatever is told to a server or a client is there; a Galera library is not."""
    paths = [*mysql.server_options.values(), *mysql.client_options.values()]

    assert [one for one in paths if not Path(one).exists()] == []
    assert {"basedir", "plugin-dir", "lc-messages-dir", "character-sets-dir"} == set(mysql.server_options)
    assert mysql.wsrep_provider is None


@pytest.mark.parametrize(
    "program",
    ["mysql", "mysqladmin", "mysqlbinlog", "mysqldump", "mysqlslap", "mysqlrouter", "mysqlrouter_passwd"],
)
def test_clients_and_router_run(mysql, program):
    """Each is of the server's version."""
    assert f"Ver {mysql.version}" in run(mysql.program(program), "--version")


def test_nothing_of_it_has_a_name_of_mariadb(mysql):
    """A script that asks for mariadb hears that there is none, and does not get MySQL's client."""
    assert [one.name for one in mysql.bin.iterdir() if one.name.startswith("mariadb")] == []


@pytest.fixture(scope="module")
def made(mysql, provisioner):
    """The template of the release, out of the machine's own cache."""
    return ready_template(mysql, provisioner, {}, print)


@pytest.fixture
def answers(made, provisioner):
    """``answers(found)``: a server of that release, started on a copy of the template's data."""
    hosts, nodes = [], []

    def answers(found):
        hosts.extend(provisioner.acquire(ClusterSpec("standalone", name="fetched")))
        place = hosts[-1]
        node = Node(place.name, place, found, place.port(3306), made.password)
        place.copy_tree(str(made.data), node.data)
        node.configure({})
        node.start()
        nodes.append(node)
        node.wait_answering()
        return node

    yield answers
    for node in nodes:
        node.kill()
    provisioner.give_back(hosts)


def link_or_copy(source, target):
    """A hard link, or a copy where the target is another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def copied(made, mysql, tmp_path, monkeypatch):
    """The release out of a cache that was copied to another place, while the original cannot be asked."""
    entry = mysql.bin.parent
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a copy"))
    shutil.copytree(entry, cache.releases() / entry.name, symlinks=True, copy_function=link_or_copy)
    monkeypatch.setattr(find, "_fetch", lambda *_: pytest.fail("it was fetched again"))
    return find.find("mysql:9.7")


@pytest.fixture
def tarball(made, mysql, tmp_path, monkeypatch):
    """The fetched server, laid out as the vendor's tarball is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return mysql_tarball(mysql, tmp_path / "mysql-9.7.4-linux-glibc2.28-x86_64")


def asked(node):
    """Where a server says that its files are, and what one of its clients gets from it."""
    client = [node.release.program("mysql"), f"--defaults-extra-file={node.host.directory}/my.cnf"]
    login = ["-h127.0.0.1", f"-P{node.port}", f"-u{node.endpoint.user}", f"-p{node.password}"]
    return run(*client, *login, "-BNe", "SELECT @@version, @@plugin_dir, @@character_sets_dir").strip().split("\t")


def test_it_runs_from_a_copy_of_the_cache(answers, copied, tmp_path):
    """Nothing in the entry knows where it was made. What replication needs is there, and the server takes it."""
    node = answers(copied)
    version, plugins, charsets = asked(node)

    assert version.startswith(copied.version)
    assert plugins.startswith(str(tmp_path))
    assert charsets.startswith(str(tmp_path))
    for plugin, library in PLUGINS.items():
        node.query(f"INSTALL PLUGIN {plugin} SONAME '{library}'")
    states = dict(node.query("SELECT plugin_name, plugin_status FROM information_schema.plugins"))
    assert {plugin: states[plugin] for plugin in PLUGINS} == dict.fromkeys(PLUGINS, "ACTIVE")


@pytest.mark.thorough
def test_it_runs_from_a_packed_tarball(answers, tarball, tmp_path):
    """``mysql:9.7=FILE.tar.gz``: the server starts from the unpacked tarball, and not from the original files."""
    file = tmp_path / f"{tarball.name}.tar.gz"
    with tarfile.open(file, "w:gz", compresslevel=0, dereference=True) as packed:
        packed.add(tarball, tarball.name)
    tarball.rename(tarball.with_name("away"))

    found = find.find(f"mysql:9.7={file}")
    version, plugins, _ = asked(answers(found))

    assert version.startswith(found.version)
    assert plugins.startswith(str(cache.releases() / "tar-"))


@pytest.fixture
def vendor(made, mysql, tmp_path, monkeypatch):
    """A signed repository with the fetched server in the layout of MySQL's packages; one package has its libraries."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root, key = mysql.bin.parent / "root", SigningKey(tmp_path / "key")
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    private = {f"usr/lib/mysql/private/{path.name}": path for path in libraries.glob("libprotobuf*.so*")}
    others = [path for path in libraries.glob("*.so*") if not path.name.startswith("libprotobuf")]
    version = f"{mysql.version}-1debian12"
    repository = VendorRepository(tmp_path / "mysql", key, "mysql-9.7-lts")
    repository.add(
        SERVER,
        version,
        "mysql-libraries",
        {
            "usr/sbin/mysqld": root / "usr/sbin/mysqld",
            "usr/lib/mysql/plugin": root / "usr/lib/mysql/plugin",
            "usr/share/mysql-9.7/english": root / "usr/share/mysql/english",
            "usr/share/mysql-9.7/charsets": root / "usr/share/mysql/charsets",
            **private,
        },
    )
    clients = {f"usr/bin/{name}": root / "usr/bin" / name for name in ("mysql", "mysqladmin", "mysqlslap")}
    repository.add(CLIENT, version, "", clients)
    directory = f"usr/lib/{libraries.name}"
    repository.add("mysql-libraries", version, "", {f"{directory}/{path.name}": path.resolve() for path in others})
    router = {"usr/bin/mysqlrouter": root / "usr/bin/mysqlrouter"}
    router |= {path: root / path for path in ("usr/lib/mysqlrouter", "usr/lib/mysql-router")}
    repository.add(ROUTER, "9.8.0-1debian12", "mysql-libraries", router, component="mysql-tools")
    repository.publish()
    yield repository
    key.end()


def test_it_runs_from_a_vendors_repository(answers, vendor, provisioner, tmp_path):
    """Fetched by the private apt and checked with the vendor's key, it runs with its private libraries and a router."""
    debian = Archive(tmp_path / "debian", "bookworm")
    debian.add("unrelated", "1")
    debian.publish()
    row = vendor.repository(title="MySQL's repository", tools="mysql-tools")
    origin = Origin("bookworm", (SERVER, CLIENT), repository=row, extras=(ROUTER,))
    offer = Offer("mysql", "9.7", (origin,), MYSQL_PROGRAMS)

    fetched.fetch(offer, sources.candidates(offer, [debian.entry()]), print)
    found = find.find("mysql:9.7")
    node = answers(found)
    version, plugins, charsets = asked(node)
    router = MySQLRouter(provisioner, Standalone(), [node])
    try:
        router.start()
        router.follow()
        wait.until(router.problems, "the router of the vendor's repository", seconds=30)
    finally:
        router.close()

    assert router_of(found) == found.bin / "mysqlrouter"
    assert version.startswith(found.version)
    assert found.bin.is_relative_to(tmp_path / "cache")
    assert plugins.endswith("/lib/mysql/plugin/")
    assert charsets.endswith("/share/mysql-9.7/charsets/")
    assert found.server_options["lc-messages-dir"].endswith("/share/mysql-9.7")
    assert cache.read(found.bin.parent).supplier == "MySQL's repository"
    assert [row.state for row in find.list_releases() if row.supplier == "MySQL's repository"] == ["cached"]


def test_it_runs_from_a_vendors_tarball(answers, tarball):
    """``mysql:9.7=DIRECTORY``: the tarball's server and client are used where they lie, with its own files.

    A server of Percona gets an option against telemetry, with which a server starts that does not know it.
    """
    named = find.find(f"mysql:9.7={tarball}")
    server = tarball / "bin" / "mysqld"
    says = "echo 'mysqld  Ver 9.7.4-4 for Linux on x86_64 (Percona Server (GPL), Release 4, Revision 0)'"
    server.write_text(server.read_text().replace("exec ", f"case $* in *--version*) {says}; exit;; esac\nexec "))
    with pytest.raises(ConfigError, match=r"^mysql:9\.7: the server of .* is percona 9\.7\.4$"):
        find.find(f"mysql:9.7={tarball}")

    found = find.find(f"percona:9.7={tarball}")
    node = answers(found)
    version, plugins, charsets = asked(node)

    assert version.startswith(named.version)
    assert plugins == f"{tarball}/lib/plugin/"
    assert charsets == f"{tarball}/share/charsets/"
    assert found.server_options.items() >= named.server_options.items()
    assert found.program("mysqlslap").resolve() == tarball / "bin" / "mysqlslap"
    assert (found.product, str(found.release_name), found.upstream) == ("percona", "percona:9.7", "mysql")
    assert "loose-percona-telemetry-disable = 1" in Path(node.host.directory, "my.cnf").read_text()


def test_it_is_taken_from_path(tarball, monkeypatch):
    """``mysql:path`` is the server on PATH with the files beside it, as if the tarball was named."""
    monkeypatch.setenv("PATH", f"{tarball}/bin:/usr/bin:/bin")
    monkeypatch.setattr(local_programs, "_SBIN", ())
    found, named = find.find("mysql:path"), find.find(f"mysql:9.7={tarball}")

    assert found.source == f"PATH ({tarball}/bin/mysqld)"
    assert (found.version, found.server_options) == (named.version, named.server_options)
    assert {one: found.program(one).resolve() for one in ("mysqld", "mysql")} == {
        one: named.program(one).resolve() for one in ("mysqld", "mysql")
    }

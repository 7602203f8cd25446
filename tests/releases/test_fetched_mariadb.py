"""Releases that were really fetched. They come out of this machine's own cache, so each is fetched once."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.releases import catalogue, fetched, find, sources
from pytest_dbcluster.releases.catalogue import Origin
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache
from tests.releases.test_apt import Archive
from tests.support.facts import missing
from tests.support.vendor_repository import SigningKey, VendorRepository

ROOT = Path(__file__).parents[2]
PROGRAMS = ("mariadb", "mariadb-admin", "my_print_defaults")  # of the server that an archive has
FETCH = """\
import sys
from pytest_dbcluster.releases import find, sources

def told(line):
    print(line, flush=True)
    if line.startswith(sys.argv[2]):
        sys.stdin.read()

sources.host_entries = lambda: [sources.AptEntry(sys.argv[1], "bookworm", ("main",), (("Trusted", "yes"),))]
print(find.find("haproxy", progress=told).bin, flush=True)
"""


def run(program, *arguments, **environment):
    """What a program printed; it has to succeed."""
    variables = {"PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run([program, *arguments], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(params=["mariadb:10.5", "mariadb:10.11", "mariadb:11.8"])
def found(request):
    """Each release that is supported."""
    return find.find(request.param, progress=print)


def test_an_exact_version_runs_from_an_archive(tmp_path, monkeypatch, provisioner):
    """``mariadb:10.11.19``: the real server, from a signed archive that has only this version."""
    original = find.find("mariadb:10.11")
    made = ready_template(original, provisioner, {}, print)
    root, native = original.bin.parent / "root", f"1:{original.version}+maria~deb12"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    key = SigningKey(tmp_path / "key")
    archive = VendorRepository(tmp_path / f"mariadb-{original.version}", key, "main")
    archive.label = "MariaDB"
    parts = ["lib", "lib64", "usr/lib", "usr/sbin", "usr/share/mysql", *(f"usr/bin/{name}" for name in PROGRAMS)]
    archive.add("mariadb-server", native, "", {part: root / part for part in parts if (root / part).exists()})
    archive.publish()
    key.end()
    row = {"vendor": "MariaDB", "title": "MariaDB's archive", "label": "MariaDB", "own": ("mariadb-*",)}
    repository = archive.repository(**row, address=f"file:{tmp_path}/mariadb-{{version}}", is_archive=True)
    origin = Origin("bookworm", ("mariadb-server",), repository=repository)
    offer = dataclasses.replace(
        catalogue.offer("mariadb", original.version), origins=(origin,), programs=("mariadbd", *PROGRAMS)
    )
    debian = Archive(tmp_path / "debian", "bookworm")
    debian.publish()

    fetched.fetch(offer, sources.candidates(offer, [debian.entry()]), print)
    found = find.find(f"mariadb:{original.version}")
    (place,) = provisioner.acquire(ClusterSpec("standalone", name="exact"))
    node = Node(place.name, place, found, place.port(3306), made.password)
    try:
        place.copy_tree(str(made.data), node.data)
        node.configure({})
        node.start()
        node.wait_answering()
        (answer,) = node.query("SELECT @@version")
    finally:
        node.kill()
        provisioner.give_back([place])

    assert found.bin.is_relative_to(tmp_path)
    assert answer[0].startswith(original.version)
    assert found.wsrep_provider.is_relative_to(tmp_path)


def test_a_fetched_server_says_its_version(found):
    """The programs of every suite run on this host, and their version is the named one."""
    assert f"Ver {found.version}-MariaDB" in run(found.program("mariadbd"), "--version")
    assert f"{found.version}.".startswith(found.name.partition(":")[2] + ".")


def test_every_path_of_a_release_exists(found):
    """Whatever is told to a server or a client is there."""
    paths = [*found.server_options.values(), *found.client_options.values(), found.wsrep_provider]

    assert [path for path in paths if not Path(path).exists()] == []
    assert {"basedir", "plugin-dir", "lc-messages-dir", "character-sets-dir"} == set(found.server_options)


@pytest.mark.parametrize(
    ("program", "argument"),
    [
        ("mariadb", "--version"),
        ("mariadb-admin", "--version"),
        ("mariadb-slap", "--version"),
        ("mysqlslap", "--version"),
        ("mariadb-backup", "--version"),
        ("mbstream", "-?"),
        ("my_print_defaults", "--version"),
        ("socat", "-V"),
        ("pv", "--version"),
        ("ss", "--version"),
        ("ip", "-V"),
        ("ps", "--version"),
    ],
)
def test_what_a_cluster_needs_runs(found, program, argument):
    """Clients, backup, and what the SST scripts call: nothing of it is asked of the host."""
    run(found.program(program), argument)


def test_the_sst_scripts_find_each_other(found):
    """The script that others read lies beside them, as do the programs that it prefers."""
    scripts = {path.name for path in found.bin.glob("wsrep_sst_*")}

    assert {"wsrep_sst_common", "wsrep_sst_mariabackup", "wsrep_sst_rsync"} <= scripts
    assert os.access(found.bin / "wsrep_sst_mariabackup", os.X_OK)


def test_a_process_has_its_programs_name(found):
    """The SST scripts look for "socat" among the listeners; the loader's name would tell them nothing."""
    process = subprocess.Popen([found.program("socat"), "-u", "PIPE", "STDOUT"], env={"PATH": "/usr/bin:/bin"})
    try:
        comm = Path(f"/proc/{process.pid}/comm")
        wait.until(lambda: [] if comm.read_text() == "socat\n" else [comm.read_text()], "socat", seconds=60)
    finally:
        process.kill()
        process.wait()


def test_children_do_not_inherit_the_libraries(found):
    """Programs of the host that a server starts run with the host's libraries."""
    said = run(found.program("socat"), "-u", "SYSTEM:env", "STDOUT")

    assert "LD_LIBRARY_PATH" not in said


def test_a_shim_runs_through_path_and_links(found, tmp_path):
    """A program finds its files when it is called by its name alone, by a link, or from its own directory."""
    link = tmp_path / "my_print_defaults"
    link.symlink_to(found.program("my_print_defaults"))

    run("my_print_defaults", "--version", PATH=f"{found.bin}:/usr/bin:/bin")
    run(link, "--version")
    subprocess.run(["./my_print_defaults", "--version"], cwd=found.bin, check=True, capture_output=True)


@pytest.mark.parametrize(("name", "installs"), [("mariadb:10.5", "the cache"), ("mariadb:11.8", "its packages")])
def test_a_server_of_another_suite_answers(name, installs, tmp_path):
    """Data directory, start, a plugin, a query and shutdown, with the older and the newer libc than the host's.

    It runs from the cache, and from its unpacked packages; one of them makes the data directory.
    """
    found = find.find(name, progress=print)
    unpacked = find.find(f"{name}={found.bin.parent / 'root'}")
    os_user = [f"--user={'root' if os.getuid() == 0 else os.environ.get('USER', '')}"]
    installing = found if installs == "the cache" else unpacked
    run(
        installing.program("mariadb-install-db"), "--no-defaults", *options_of(installing.server_options),
        f"--datadir={tmp_path}/data", "--auth-root-authentication-method=normal", "--skip-test-db", *os_user,
    )  # fmt: skip
    for release in (found, unpacked):
        answers_and_ends(release, tmp_path, os_user)


def options_of(settings):
    """Settings of a release as a program's options."""
    return [f"--{option}={value}" for option, value in settings.items()]


def answers_and_ends(release, place, os_user):
    """Start a server on the data directory of this place, load a plugin into it, ask it, and shut it down."""
    places = [f"--datadir={place}/data", f"--socket={place}/s", f"--log-error={place}/log.err"]
    options = ["--no-defaults", *options_of(release.server_options), *places, *os_user, "--skip-networking"]
    server = subprocess.Popen([release.program("mariadbd"), *options])
    try:
        login = ["--no-defaults", *options_of(release.client_options), f"--socket={place}/s", "-uroot"]
        wait.until(lambda: [] if (place / "s").exists() else ["no socket"], release.name, seconds=30)
        query = "INSTALL SONAME 'auth_ed25519'; SELECT 1, VERSION(); UNINSTALL SONAME 'auth_ed25519'"
        assert run(release.program("mariadb"), *login, "-BNe", query).startswith(f"1\t{release.version}-MariaDB")
        assert Path(f"/proc/{server.pid}/comm").read_text() == "mariadbd\n"
        run(release.program("mariadb-admin"), *login, "shutdown")
        assert server.wait(30) == 0
    finally:
        server.kill()
        server.wait()


def test_sysbench_finds_its_scripts():
    """The script's full path and the variables of the release are all it takes."""
    found = find.find("sysbench", progress=print)

    said = run(found.program("sysbench"), found.scripts / "oltp_read_write.lua", "help", **found.environment)

    assert "oltp_read_write.lua options:" in said


def test_haproxy_checks_a_configuration(tmp_path):
    """The fetched HAProxy reads its configuration and finds it valid."""
    found = find.find("haproxy", progress=print)
    timeouts = "defaults\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n"
    (tmp_path / "haproxy.cfg").write_text(f"{timeouts}listen galera\n bind 127.0.0.1:3306\n server a 127.0.0.1:3307\n")

    run(found.program("haproxy"), "-c", "-f", tmp_path / "haproxy.cfg")


def test_a_cache_may_be_copied_to_another_place(tmp_path, monkeypatch):
    """Nothing in an entry knows where it lies: a copy runs when the original is not there."""
    entry = find.find("haproxy", progress=print).bin.parent
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a copy"))
    shutil.copytree(entry, cache.releases() / entry.name, symlinks=True)
    monkeypatch.setattr(find, "_fetch", lambda *_: pytest.fail("it was fetched again"))

    copied = find.find("haproxy")

    assert str(copied.bin).startswith(str(tmp_path))
    assert str(entry) not in (copied.bin / "haproxy").read_text()
    assert "HAProxy version" in run(copied.program("haproxy"), "-v")


@pytest.fixture
def mirror(tmp_path):
    """A mirror that has the fetched HAProxy, as a URL."""
    made = VendorRepository(tmp_path / "mirror", None, "main", label="Debian")  # which nobody signs
    root = find.find("haproxy", progress=print).bin.parent / "root"
    made.add("haproxy", "2.6.12-1", files={part.name: part for part in root.iterdir() if part.is_dir()})
    made.publish(signed=False)
    return f"file:{made.directory}"


def fetching(home, mirror, pauses_at):
    """A process that fetches haproxy into its own cache. It pauses at a line until its input ends."""
    variables = {**os.environ, "XDG_CACHE_HOME": str(home), "PYTHONPATH": str(ROOT), "DBCLUSTER_MIRROR": ""}
    command, pipe = [sys.executable, "-c", FETCH, mirror, pauses_at], subprocess.PIPE
    return subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, text=True, bufsize=1)


def test_a_killed_fetch_leaves_nothing_and_two_at_once_are_one(tmp_path, monkeypatch, mirror):
    """SIGKILL in mid-fetch leaves no half entry; of two processes after it one fetches and the other waits."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    killed = fetching(tmp_path, mirror, "fetching haproxy from")
    for line in killed.stdout:
        if line.startswith("fetching haproxy from"):
            break
    killed.kill()
    killed.communicate()
    assert find.cached_releases() == []
    (stale,) = cache.releases().glob(".fetching-*")

    first = fetching(tmp_path, mirror, "reading ")
    assert first.stdout.readline().startswith("reading ")
    assert not stale.exists()
    second = fetching(tmp_path, mirror, "nothing")
    waits = second.stdout.readline()
    said = [process.communicate(timeout=300)[0].splitlines() for process in (first, second)]

    architecture = cache.entries()[0][1].architecture
    waiting = ("waiting for another process", f"fetches haproxy-{architecture};", "30 min at most (--db-wait)")
    assert missing(waits, *waiting) == []
    assert said[0][-1] == said[1][-1] == str(cache.releases() / f"haproxy-{architecture}" / "bin")
    assert [path.name for path in cache.releases().iterdir()] == [f"haproxy-{architecture}"]

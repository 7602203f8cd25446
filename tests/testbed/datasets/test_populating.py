"""Populating a lone server: one process of several does it, and one that fails leaves nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError, Unsupported, WorkloadError
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets
from tests.support.facts import missing
from tests.testbed.datasets.words import Words

ROOT = Path(__file__).parents[3]


PROGRAM = """\
import sys, time
from pathlib import Path
from pytest_dbcluster.releases import find
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.testbed.datasets.words import Words

class Waiting(Words):
    data_set = "words of two"
    def populate(self, setting):
        while not Path(sys.argv[1]).exists():
            time.sleep(0.02)
        super().populate(setting)

datasets.datasets_directory = lambda: Path(sys.argv[2])
hosts = LocalProvisioner()
try:
    client = hosts.acquire(ClusterSpec("standalone", name="client"))[0]
    tell = lambda line: print(line, flush=True)
    print(datasets.dataset_template(Waiting(), find.find("mariadb:10.11"), hosts, client, {}, tell).data)
finally:
    hosts.close()
"""


def test_of_two_processes_one_populates_and_the_other_waits(own_data_sets, tmp_path):
    """Both processes get the same data set, and the second one reports that it waits.

    The size of the data set is that of its files, in the unit of buffer pools.
    """
    go = tmp_path / "go"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(go), str(own_data_sets)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(2)
    ]
    # Templates are in the cache of this machine; a process may have to wait for one before.
    first = sorted(next(line for line in process.stdout if "words of two" in line) for process in both)
    go.touch()
    texts = [process.communicate(timeout=60)[0] for process in both]
    ends = [text.splitlines()[-1] for text in texts]

    assert first[0].startswith("populating words of two on one mariadb:10.11 ")
    assert first[1].startswith("waiting for another process that populates words of two in ")
    assert ends[0] == ends[1]
    shown = re.findall(r"^populated words of two in [\d.]+ s: \d+ MiB on disk", "".join(texts), re.MULTILINE)
    assert len(shown) == 1
    assert Path(ends[0]).is_dir()


def test_populating_that_fails_leaves_nothing(keep, said, own_data_sets, provisioner):
    """The error names data set and release; the next call populates from the beginning."""
    with pytest.raises(WorkloadError) as caught:
        keep(Words(11, error=WorkloadError("sysbench said no")))

    assert missing(caught.value, "could not populate 11 words", "mariadb:10.11: sysbench said no") == []
    assert not any(data_set.name == "11 words" for data_set in datasets.datasets())
    assert [path.name for path in own_data_sets.glob(".*")] == []
    assert list(provisioner.directory.glob("*-populating/*")) == []
    assert keep(Words(11)).data.is_dir()


def test_ctrl_c_while_it_is_populated_leaves_nothing(keep, own_data_sets, provisioner):
    """Ctrl-C leaves no server, no data and no lock, so the next call populates at once."""
    with pytest.raises(KeyboardInterrupt):
        keep(Words(16, error=KeyboardInterrupt()))

    assert not any(data_set.name == "16 words" for data_set in datasets.datasets())
    assert [path.name for path in own_data_sets.glob(".*")] == []
    assert list(provisioner.directory.glob("*-populating/*")) == []
    left = runs.Run(provisioner.directory, 0, 0.0, kept=False).processes()
    assert [one.pid for one in left if "-populating/" in " ".join(one.cmdline())] == []


def test_what_the_load_itself_finds_wrong_is_not_kept(keep):
    """A tool may report success although it made only a part of the tables; such a data set is not kept."""
    with pytest.raises(WorkloadError, match=r"fails its own check: 3 of 4 words are there; no index$"):
        keep(Words(14, wrong=("3 of 4 words are there", "no index")))

    assert not any(data_set.name == "14 words" for data_set in datasets.datasets())


def test_what_a_server_logged_an_error_about_is_not_kept():
    """An [ERROR] line of the server fails populating, even when the tool ignores the error."""
    cluster = types.SimpleNamespace(new_errors=lambda: ["node1 logged: [ERROR] The table 'words' is full"])

    with pytest.raises(WorkloadError, match=r"^the server logged errors while populating: node1 logged: .* is full$"):
        datasets.check(Words(), cluster)


def test_a_disk_that_is_too_small_for_what_the_load_expects_is_named(keep, said):
    """When the workload knows its size, too little disk is an error before a server starts."""

    class Large(Words):
        data_set_bytes = 10**18

    with pytest.raises(
        Unsupported, match=r"^no room on the disk of /.* to populate 15 words: \d.* GB free, 1000000000.. GB"
    ):
        keep(Large(15))
    assert "ready" not in "".join(said)


def test_a_full_disk_is_named(keep, monkeypatch):
    """The error for a full disk gives the size of the data, the free bytes, and two remedies."""

    class FillsTheDisk(Words):
        def populate(self, setting):
            monkeypatch.setattr(shutil, "disk_usage", lambda place: types.SimpleNamespace(free=5_000_000))
            super().populate(setting)

    with pytest.raises(WorkloadError) as caught:
        keep(FillsTheDisk(12, error=WorkloadError("The table 'words' is full")))
    assert "words' is full\nthe disk of /" in str(caught.value)
    assert " is full: 5 MB free, and the server's data has 1" in str(caught.value)
    assert str(caught.value).endswith("or set DBCLUSTER_DATA_DIR to a directory on another disk")


def test_a_cache_on_another_disk_needs_room_too(tmp_path, monkeypatch):
    """A cache on another disk is checked for room before populating, not after it."""
    shared = Path("/dev/shm")
    if shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm and the temporary directory are one file system")
    (tmp_path / "data").mkdir()
    client, made = FakeHost(directory=str(shared)), types.SimpleNamespace(data=tmp_path / "data")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "small"))
    client.free = 10**9
    monkeypatch.setattr(shutil, "disk_usage", lambda place: types.SimpleNamespace(free=5_000_000))

    class Large(Words):
        data_set_bytes = 10**8

    with pytest.raises(Unsupported) as caught:
        datasets._free_bytes(
            Large(),
            made,
            ClusterSpec("standalone"),
            types.SimpleNamespace(client=client, provisioner=FakeProvisioner()),
        )
    assert str(caught.value).startswith(f"no room in the cache {tmp_path}/small/pytest-dbcluster to keep ")
    assert ": 5 MB free, 100 MB needed; " in str(caught.value)
    assert str(caught.value).endswith("or set XDG_CACHE_HOME to a directory on another disk")


def test_wrong_input_stays_wrong_input(keep):
    """A ConfigError of the workload passes unchanged, and does not become a WorkloadError."""
    with pytest.raises(ConfigError, match=r"^warehouses=0 is refused$"):
        keep(Words(13, error=ConfigError("warehouses=0 is refused")))


def test_the_populating_server_has_the_memory_of_its_host(keep, provisioner, monkeypatch):
    """A guest has less than this machine: a larger buffer pool would not fit into it."""
    found = []

    class Asks(Words):
        def populate(self, setting):
            found.extend(setting.cluster.writers[0].query("SELECT @@innodb_buffer_pool_size"))
            raise WorkloadError("it is known now")

    monkeypatch.setattr(type(provisioner), "node_memory", lambda self, spec, machine: min(machine, 2**30))
    with pytest.raises(WorkloadError, match="it is known now"):
        keep(Asks(17))

    assert found == [(256 * 2**20,)]

"""Resolution: what is known about a variant before its servers start."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench

ONE = ClusterSpec("standalone", release="mariadb:10.11")


@pytest.fixture
def without_mysqlslap(mariadb, tmp_path, monkeypatch):
    """A resolution for programs of which mysqlslap is missing."""
    for program in mariadb.bin.iterdir():
        if "slap" not in program.name:
            (tmp_path / program.name).symlink_to(program)
    given = dataclasses.replace(mariadb, bin=tmp_path, source="/opt/mariadb")
    monkeypatch.setattr(LocalProvisioner, "supply", lambda *_: given)
    with_provisioner = LocalProvisioner()
    yield Resolution(with_provisioner, fragments=tmp_path, below=None, progress=lambda _: None)
    with_provisioner.close()


def test_programs_without_mysqlslap_are_refused_before_a_server_starts(without_mysqlslap, monkeypatch):
    """The error names the program, where it was looked for, and workloads that do not need it."""
    monkeypatch.setattr("pytest_dbcluster.testbed.resolution.ready_template", lambda *_: pytest.fail("a server starts"))

    with pytest.raises(ConfigError, match=r"mariadb-slap, which mariadb:10\.11 \(/opt/mariadb\)") as caught:
        without_mysqlslap.resolve(ONE, client_of=[SysBench(), MySQLSlap("write")])
    assert "SysBench(...) or TPCC(...)" in str(caught.value)


def test_other_workloads_run_on_programs_without_mysqlslap(without_mysqlslap):
    """Their tool is no part of the release."""
    assert without_mysqlslap.resolve(ONE, switched=False, client_of=[SysBench()]).release.source == "/opt/mariadb"


def test_an_image_without_mysqlslap_lacks_it(mariadb, tmp_path, monkeypatch):
    """Its files are known from the image, and the error names it. No release in the cache has one here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    image = dataclasses.replace(mariadb, image="docker.io/mysql", files=frozenset(["/usr/bin/mariadb"]))

    assert "(image docker.io/mysql)" in MySQLSlap("write").lacks(image)
    assert not MySQLSlap("write").lacks(dataclasses.replace(image, files=frozenset(["/usr/bin/mariadb-slap"])))


@pytest.fixture
def resolution(provisioner, tmp_path):
    """Specs are resolved for this machine; no server may start."""
    return Resolution(provisioner, fragments=tmp_path, below=None, progress=lambda _: None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"innodb_buffer_pool_size": "9000G"},
            r"innodb_buffer_pool_size=9000\.0 GiB exceeds the memory of a node, [\d.]+ GiB",
        ),
        (
            {"innodb_buffer_pool_size": "1G", "key_buffer_size": "9T"},
            r"1\.0 GiB and key_buffer_size=9216\.0 GiB exceeds",
        ),
        (
            {"innodb_log_file_size": "500T"},
            r"innodb_log_file_size=512000\.0 GiB exceeds the free disk of a node, [\d.]+ GiB",
        ),
        ({"innodb_data_file_path": "ibdata1:500T:autoextend"}, r"innodb_data_file_path=512000\.0 GiB"),
    ],
)
def test_sizes_beyond_the_machine_are_refused_before_a_server_starts(resolution, options, words):
    """With what was asked, what a node has, and how to lower both files of a comparison."""
    with pytest.raises(ConfigError, match=words) as caught:
        resolution.resolve(ONE.with_options(options), switched=False)
    assert f"--option {next(iter(options))}=... of dbcluster compare" in str(caught.value)


def test_sizes_that_fit_are_taken(resolution):
    """Percent of the memory too."""
    spec = ONE.with_options(innodb_buffer_pool_size="50 %", innodb_log_file_size="1100M")

    assert dict(resolution.resolve(spec, switched=False).options)["innodb_log_file_size"] == "1100M"


def test_each_node_has_its_share(resolution):
    """Five servers of 30 % of the machine's memory each do not fit."""
    total = resolution.provisioner.memory().total
    spec = dataclasses.replace(ONE, topology="galera", nodes=5).with_options(
        innodb_buffer_pool_size=f"{total * 3 // 10}"
    )

    with pytest.raises(ConfigError, match=r"exceeds the memory of a node.*share with 5 nodes"):
        resolution.resolve(spec, switched=False)

"""Implied options agree with the servers on this machine and with their versions."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.dialects.implied_options import implied_options
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support.facts import missing


@pytest.fixture(scope="module", params=["mariadb:10.5", "mariadb:10.11", "mariadb:11.8", "mysql:9.7"])
def server(request, provisioner):
    """Each real release: its words, and the options that it knows itself."""
    release = find.find(request.param, progress=print)
    made = ready_template(release, provisioner, {}, print)
    return dialect(release.product, release.version), made.variables.keys() | made.words


def test_every_pinned_option_is_known_or_named(server):
    """A server is started with what it knows; what it lacks, it does anyway, with the value that is pinned."""
    words, known = server

    assert set(words.preset) <= known
    assert {name: words.pinned[name] for name in words.pinned.keys() - known} == {
        name: words.implied[name].value for name in words.pinned.keys() - known
    }


def test_nothing_is_named_that_the_server_has(server):
    """An option that can be set is no fixed behaviour."""
    words, known = server

    assert words.implied.keys() & known == set()


def test_one_spec_serves_versions_with_the_option_and_without(provisioner, tmp_path):
    """The newer server is told, the older one is not; the run's closing notes say so once."""
    (tmp_path / "site.cnf").write_text("[mysqld]\ninnodb_snapshot_isolation = OFF\n")
    below = cnf_file.read(tmp_path / "site.cnf")
    pool = Pool(Resolution(provisioner, fragments=tmp_path, below=below, progress=print))
    told = {}
    for name in ("mariadb:10.5", "mariadb:11.8", "mysql:9.7"):
        spec = ClusterSpec("standalone", release=ReleaseName.parse(name))
        told[name] = [pool.resolution.resolve(spec).options for _ in range(2)][1].get("innodb_snapshot_isolation")

    assert told == {"mariadb:10.5": None, "mariadb:11.8": "OFF", "mysql:9.7": None}
    without = ("mariadb:10.5", "mysql:9.7")
    for name, line in zip(without, pool.resolution.overridden, strict=True):
        assert missing(line, f"{name} has no option innodb_snapshot_isolation", "as with OFF: ") == []


@pytest.mark.parametrize(
    ("vendor", "version", "option", "value"),
    [
        ("mariadb", (10, 5, 23), "innodb_snapshot_isolation", "OFF"),
        ("mariadb", (10, 6, 18), "innodb_snapshot_isolation", None),
        ("mariadb", (10, 11, 7), "innodb_snapshot_isolation", "OFF"),
        ("mariadb", (10, 11, 8), "innodb_snapshot_isolation", None),
        ("mariadb", (), "innodb_snapshot_isolation", None),
        ("mysql", (8, 0, 30), "innodb_snapshot_isolation", "OFF"),
        ("mysql", (8, 0, 43), "binlog_transaction_dependency_tracking", None),
        ("mysql", (8, 4, 0), "binlog_transaction_dependency_tracking", "WRITESET"),
        ("mysql", (8, 4), "binlog_transaction_dependency_tracking", "WRITESET"),
        ("mysql", (), "transaction_write_set_extraction", "XXHASH64"),
    ],
)
def test_an_option_is_lacked_from_one_version_to_another(vendor, version, option, value):
    """Before it came, between two series, or since it went; no version means the newest."""
    found = implied_options(vendor, version).get(option)

    assert (found.value if found else None) == value

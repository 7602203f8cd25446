"""What hosts are asked to be limited to: needs, storage profiles, and what is said where they cannot be met."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from fixtures import clusters
from pytest_dbcluster import spec
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.formatting import memory_bytes, memory_text
from pytest_dbcluster.hosts.provisioner import memory_share
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProvisioner
from pytest_dbcluster.plugin.command_line import add_options
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.spec import ClusterSpec, HostNeeds, ReleaseName
from pytest_dbcluster.system import probes
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.testbed.evidence import blind_spots
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support.clusters import variant_of
from tests.support.facts import missing

GALERA = ClusterSpec("galera", nodes=3)
LIMITS = frozenset({"cores", "memory", "iops", "netem"})


def test_needs_are_part_of_what_a_cluster_is():
    """Another limit is another cluster, and its short name says which."""
    limited = GALERA.with_needs(cores=0.5, memory="512M", iops=200, rtt=0.01)

    assert limited.needs == HostNeeds(cores=0.5, memory=512 * 2**20, iops=200, rtt=0.01)
    assert str(limited) == "galera3_cores_0.5_memory_512M_iops_200_rtt_0.01"
    assert limited != GALERA
    assert GALERA.with_needs(cores=2).with_needs(iops=200).needs == HostNeeds(cores=2, iops=200)
    assert GALERA.with_needs(disk="4G").needs == HostNeeds(disk=2**32)
    assert HostNeeds(disk=2**32).powers == {"block-devices": "disk=4G"}


@pytest.mark.parametrize(
    ("text", "number"), [("512M", 2**29), ("2G", 2**31), ("1 GiB", 2**30), ("64kB", 2**16), ("100", 100), (7, 7)]
)
def test_memory_is_written_as_my_cnf_has_it(text, number):
    """K, M and G are powers of 1024; a number is bytes."""
    assert memory_bytes(text) == number
    assert memory_bytes(memory_text(number)) == number


@pytest.mark.parametrize(
    ("needs", "facts"),
    [
        ({"cores": 0}, ("cores=0 ", "a number of CPUs", "above 0")),
        ({"cores": "2"}, ("cores='2' ", "a number of CPUs", "above 0")),
        ({"rtt": -0.1}, ("rtt=-0.1 ", "seconds", "from 0 to 10")),
        ({"rtt": float("nan")}, ("rtt=nan ", "seconds", "from 0 to 10")),
        ({"iops": 1.5}, ("iops=1.5 ", "whole operations a second", "above 0")),
        ({"iops": True}, ("iops=True ", "whole operations a second", "above 0")),
        ({"memory": -1}, ("memory=-1 ", "whole bytes", "such as 512M", "above 0")),
        ({"memory": "much"}, ("memory='much' ", "whole bytes", "such as 512M or 2G")),
        ({"disk": "much"}, ("disk='much' ", "whole bytes", "such as 512M or 2G")),
        ({"disk": 0}, ("disk=0 ", "whole bytes", "such as 512M", "above 0")),
        (
            {"links": {}},
            ("with_needs()", "no limit", "known: cores, memory, iops, disk, rtt, loss, jitter, rate, links"),
        ),
    ],
)
def test_a_need_that_is_none_is_refused(needs, facts):
    """When the spec is written; the words say what it takes."""
    with pytest.raises(ConfigError) as caught:
        GALERA.with_needs(**needs)

    of = "of cluster galera3" if "links" in needs else "of a cluster's hosts"
    assert missing(caught.value, of, *facts) == []


def test_a_profile_is_a_rate_of_writes_with_a_name():
    """gp2 holds 100 or 3000, gp3 3000; nvme is the machine's own disk, asked for by name."""
    assert {name: GALERA.with_storage(name).needs.iops for name in spec.STORAGE_PROFILES} == {
        "gp2-100": 100,
        "gp2-3000": 3000,
        "gp3": 3000,
        "nvme": None,
    }
    assert str(GALERA.with_cnf("flush_2").with_storage("gp2-100")) == "flush_2_gp2_100"
    assert GALERA.with_storage("nvme") != GALERA


def test_the_last_word_about_the_disk_counts():
    """A number after a profile is no profile any more, and another need leaves the profile alone."""
    assert GALERA.with_storage("gp3").with_needs(iops=50).needs == HostNeeds(iops=50)
    assert GALERA.with_needs(iops=50).with_storage("nvme").needs == HostNeeds(storage="nvme")
    assert GALERA.with_storage("gp3").with_needs(cores=1).needs == HostNeeds(cores=1, iops=3000, storage="gp3")


def test_an_unknown_profile_lists_the_known_ones():
    """Wherever it is named."""
    known = "known: gp2-100, gp2-3000, gp3, nvme;"
    for name in (GALERA.with_storage, GALERA.on_storage, lambda said: HostNeeds(storage=said)):
        with pytest.raises(ConfigError) as caught:
            name("gp4")
        assert missing(caught.value, "unknown storage profile 'gp4'", known, "did you mean gp3?") == []


def test_the_runs_profile_lies_under_clusters_that_name_none():
    """It changes no name; what a spec says of its own volumes stays, nvme included."""
    lain = GALERA.on_storage("gp2-100")

    assert (lain.needs, str(lain)) == (HostNeeds(iops=100, storage="gp2-100"), "galera3")
    assert GALERA.with_needs(cores=1).on_storage("gp2-100").needs.iops == 100
    for own in (GALERA.with_storage("nvme"), GALERA.with_storage("gp3"), GALERA.with_needs(iops=5)):
        assert own.on_storage("gp2-100") == own
    assert GALERA.on_storage("") == GALERA


def test_the_option_takes_a_profile(tmp_path):
    """Any other name is refused before a test runs."""
    parser = argparse.ArgumentParser()
    add_options(lambda _: parser.add_argument)

    assert Settings.read(parser.parse_args([]), tmp_path).storage == ""
    assert Settings.read(parser.parse_args(["--db-storage=gp3"]), tmp_path).storage == "gp3"
    with pytest.raises(ConfigError, match=r"unknown storage profile 'ssd'; known: gp2-100, gp2-3000, gp3, nvme"):
        Settings.read(parser.parse_args(["--db-storage=ssd"]), tmp_path)


def test_what_is_not_offered_is_named_with_the_reason():
    """Only what is missing; a storage profile by its name."""
    some = FakeProvisioner(offers=frozenset({"cores"}))
    some.missing = {"iops": "no disk", "memory": "no memory here", "netem": "no netem"}

    assert some.unmet(GALERA) == some.unmet(GALERA.with_needs(cores=2)) == ""
    needed = "cluster galera3_cores_2_memory_1G_gp2_100 needs storage gp2-100, memory=1G, iops=100 of its hosts"
    reason = some.unmet(GALERA.with_needs(cores=2, memory="1G").with_storage("gp2-100"))
    assert missing(reason, needed, "does not offer here: no memory here; no disk") == []
    unexplained = FakeProvisioner().unmet(GALERA.with_needs(rtt=0.01))
    assert missing(unexplained, "cluster galera3_rtt_0.01 needs rtt=0.01 of its hosts", "does not offer here") == []
    assert unexplained.endswith("here")
    assert FakeProvisioner(offers=LIMITS).unmet(GALERA.with_needs(cores=1, memory=1, iops=1, rtt=1)) == ""


def test_a_need_that_is_not_met_is_never_ignored(tmp_path):
    """A measuring test is skipped with the reason before a server is fetched."""
    pool = Pool(Resolution(FakeProvisioner(), fragments=tmp_path, below={}, progress=print))
    spec = GALERA.with_storage("gp2-100").on_release(ReleaseName("mariadb", "1.0"))

    with pytest.raises(Unsupported, match=r"^cluster galera3_gp2_100 needs storage gp2-100, iops=100 of its hosts"):
        pool.resolution.resolve(spec)


def test_a_run_on_volumes_that_are_not_there_skips(pytester):
    """The whole way from the option to the report: which cluster, which profile, which limit."""
    pytester.makepyfile(
        """
        from pytest_dbcluster.spec import ClusterSpec
        from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

        def test_it(measure):
            one = ClusterSpec("standalone")
            a, b = measure(MySQLSlap("write"), on=[one, one.with_options(innodb_flush_log_at_trx_commit=2)])
            assert b.beats(a)
        """
    )
    result = pytester.runpytest("-rs", "--db-provisioner=fake", "--db-storage=gp2-100")

    result.assert_outcomes(skipped=1)
    result.stdout.re_match_lines([r".*cluster standalone1 needs storage gp2-100, iops=100 of its hosts, which this .*"])


def test_shares_of_memory_are_of_the_hosts_limit():
    """Where there is none, nodes share the machine."""
    assert memory_share(GALERA, 3 * 2**30) == 2**30
    assert memory_share(GALERA.with_needs(memory="256M"), 3 * 2**30) == 2**28


def variant(spec, flush):
    """A variant that flushes so."""
    return variant_of(spec, None, (), (("innodb_flush_log_at_trx_commit", str(flush)),))


def test_a_limited_device_is_not_blind(monkeypatch):
    """There a flush costs time, however fast the disk below is; a limit that no disk reaches changes nothing."""
    monkeypatch.setattr(probes, "fsync_seconds", lambda directory: 10e-6)
    (host,) = FakeProvisioner().acquire(ClusterSpec("standalone"))
    limited, fast = GALERA.with_storage("gp2-3000"), GALERA.with_needs(iops=1_000_000)

    assert blind_spots.flushing([variant(limited, 1), variant(limited, 2)], [host]) == ""
    for specs in ((GALERA, GALERA), (limited, GALERA), (fast, fast)):
        reason = blind_spots.flushing([variant(spec, flush) for flush, spec in enumerate(specs)], [host])
        assert f"an fsync takes 10 us in {host.directory}" in reason
        assert "DBCLUSTER_DATA_DIR" in reason


def test_a_flush_takes_what_it_takes_on_the_disks_of_the_variants():
    """A host may have a disk of its own; where one of them cannot show what flushing costs, a comparison cannot."""

    class Own(FakeHost):
        def flush_seconds(self):
            return self.seconds

    slow, blind = Own("node1", directory="/slow"), Own("node1", directory="/blind")
    slow.seconds, blind.seconds = 400e-6, 3e-6
    variants = [variant(GALERA, 1), variant(GALERA, 2)]

    assert blind_spots.flushing(variants, [slow, slow]) == ""
    assert blind_spots.flushing(variants, [slow, blind]).startswith("an fsync takes 3 us in /blind: this disk")


def test_a_claims_message_names_the_limits():
    """Once when they are the same, for each variant when not, and not at all when there are none."""
    gp3, small = GALERA.with_storage("gp3").needs, HostNeeds(cores=1, memory=2**26)

    (line,) = comparability.hosts_line({"a": gp3, "b": gp3})
    assert missing(line, "each node's host: ", "storage gp3, iops=3000") == []
    (line,) = comparability.hosts_line({"a": small, "b": HostNeeds()})
    assert missing(line, "each node's host: ", "a cores=1, memory=64M; b no limits") == []
    assert comparability.hosts_line({"a": HostNeeds(), "b": HostNeeds()}) == []


def test_the_suites_volumes_are_the_published_ones():
    """Each of its clusters is a shared one on gp2, which bursts."""
    own = [spec for name, spec in vars(clusters).items() if name.endswith("_GP2")]

    assert len(own) == 6
    assert {(spec.needs.storage, spec.topology, spec.nodes) for spec in own} == {("gp2-3000", "galera", 3)}
    assert "gp2" in (Path(clusters.__file__).parent / "published" / "galera-parameters-2022.toml").read_text()

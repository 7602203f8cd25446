"""A variant as a value: what is stored of its cluster."""

from __future__ import annotations

from pytest_dbcluster import redaction
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.evidence import specs


def test_a_cluster_is_told_without_directories_and_passwords(tmp_path):
    """Its storage is the profile, or the limit of writes; its parity the run's unless it has its own."""
    secret = redaction.new_password()
    spec = ClusterSpec("galera", 3, proxy="haproxy").with_options(init_connect=secret)
    made = specs.spec_document(spec.with_cnf(tmp_path / "my.cnf").with_needs(iops=200), "mysql:8.4", "8.4.3", "vendor")

    assert (made.topology, made.nodes, made.proxy, made.release, made.version) == (
        "galera", 3, "haproxy", "mysql:8.4", "8.4.3",
    )  # fmt: skip
    assert (made.cnf, made.options) == (("my.cnf",), {"init_connect": "***"})
    assert (made.storage, made.limits, made.parity) == ("iops=200", "iops=200", "vendor")
    other = specs.spec_document(ClusterSpec("standalone").with_parity("normalised"), "", "", "vendor")
    assert (other.storage, other.proxy, other.parity) == ("", "", "normalised")

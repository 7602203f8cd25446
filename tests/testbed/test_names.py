"""How the variants of one measurement are told apart."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.names import pair_names, unique_names

GALERA = ClusterSpec("galera", nodes=3)


def variants(*several):
    """Variants of these specs, each on the release that is given with it, or on one release."""
    pairs = [one if isinstance(one, tuple) else (one, "mariadb:10.11") for one in several]
    return [types.SimpleNamespace(spec=s, release_name=r) for s, r in pairs]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ([GALERA, ClusterSpec("galera", nodes=2)], ["galera3", "galera2"]),
        ([GALERA, (GALERA, "mariadb:11.4")], ["galera3@mariadb:10.11", "galera3@mariadb:11.4"]),
        ([GALERA, ClusterSpec("galera", nodes=3, proxy="haproxy")], ["galera3", "galera3+haproxy"]),
        (
            [GALERA, GALERA.with_needs(cores=0.5, iops=300).named("")],
            ["galera3", "galera3+cores_0.5+iops_300"],
        ),
        (
            [GALERA, ClusterSpec("galera", nodes=3, proxy="haproxy"), (GALERA, "mariadb:11.4")],
            ["galera3@mariadb:10.11", "galera3@mariadb:10.11+haproxy", "galera3@mariadb:11.4"],
        ),
        ([GALERA, ClusterSpec("galera", nodes=3, options=(("x", "1"),))], ["galera3#1", "galera3#2"]),
        ([GALERA, GALERA, GALERA.named("galera3#1")], ["galera3#1#1", "galera3#2", "galera3#1#2"]),
    ],
    ids=["short", "release", "proxy", "needs", "release and proxy", "number", "number of a name that is taken"],
)
def test_each_variant_has_a_name_of_its_own(specs, expected):
    """Rounds, tables and files are kept by it: release, proxy and needs tell variants apart, and else a number."""
    assert unique_names(variants(*specs)) == expected


def test_pairs_of_a_load_and_a_cluster_are_named_after_both():
    """All clusters of the first load come first; on a single cluster a load keeps its name."""
    near, far = GALERA.named("near"), GALERA.named("far")

    assert pair_names(["few", "many"], variants(near, far)) == [
        "few on near", "few on far", "many on near", "many on far",
    ]  # fmt: skip
    assert pair_names(["few", "many"], variants(near)) == ["few", "many"]


def test_pairs_of_one_name_are_refused():
    """Their rounds could not be told apart."""
    with pytest.raises(ConfigError) as caught:
        pair_names(["a", "a on b"], variants(GALERA.named("b on c"), GALERA.named("c")))
    assert "'a on b on c'; rename the workload" in str(caught.value)

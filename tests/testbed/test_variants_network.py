"""Variants that differ in their network: they share a cluster, and a path that begins at rest."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster import network
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.variants import share_path
from tests.support.clusters import variant_of

GALERA = ClusterSpec("galera", nodes=3)
FAR = GALERA.with_needs(rtt=0.01)


def variants(*specs):
    """As they are resolved, on a release that nothing is asked of."""
    made = [dataclasses.replace(variant_of(spec, None), release=types_of_release()) for spec in specs]
    ends = [spec.needs.network.ends if spec.needs.network else None for spec in specs]
    return [dataclasses.replace(variant, ends=own) for variant, own in zip(made, ends, strict=True)]


def types_of_release():
    """A release with a key alone."""
    return type("Keyed", (Release,), {"key": "key", "__init__": lambda self: None})()


def test_variants_that_differ_in_their_network_alone_share_a_cluster():
    """One that asks for none is on the same path, which delays nothing for it."""
    plain, near, far = share_path(variants(GALERA, GALERA.with_needs(rtt=0), FAR))

    assert plain.cluster_key == near.cluster_key == far.cluster_key
    assert plain.cluster_key != variants(GALERA)[0].cluster_key
    assert (plain.network, near.network, far.network) == (network.REST, network.REST, NetworkNeeds(rtt=0.01))


def test_variants_without_a_network_get_no_path():
    """Their nodes are as near as the provisioner has them."""
    (alone,) = share_path(variants(GALERA))

    assert (alone.ends, alone.network) == (None, None)
    assert alone.to_start().spec == GALERA


def test_a_cluster_starts_at_rest_with_the_ends_of_all_variants():
    """A variant that asks nothing of the load's own network has its packets on the path too: so has the other one."""
    near, far = share_path(variants(FAR, GALERA.with_needs(links={("client", "node1"): 0.02})))

    assert near.ends == far.ends == ("client",)
    assert near.cluster_key == far.cluster_key
    started = near.to_start().spec.needs.network
    assert (started.rtt, started.ends) == (0.0, ("client",))


def test_a_cluster_without_a_proxy_has_no_such_end():
    """Behind a proxy the same link is one of the proxy."""
    behind = dataclasses.replace(GALERA, proxy="haproxy").with_needs(links={("proxy", "node1"): 0.02})
    plain, proxied = share_path(variants(GALERA, behind))

    assert (plain.ends, proxied.ends) == ((), ("proxy",))

"""``Promote``: how it is written, which faults and clusters refuse it, and that it takes over."""

from __future__ import annotations

import time

import pytest

from pytest_dbcluster.clusters.events.roles import promote
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError, NotReady
from pytest_dbcluster.events import Kill, Promote
from pytest_dbcluster.spec import ClusterSpec

ASYNC = ClusterSpec("async_replication", nodes=3, proxy="haproxy")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Kill("writer", then=Promote()), "kill writer, promote most_advanced after 1 s"),
        (Kill("node1", then=Promote("node3", after=0.2)), "kill node1, promote node3 after 0.2 s"),
        (Kill(then=Promote(errant="refuse")), "kill writer, promote most_advanced after 1 s and refuse errant"),
    ],
)
def test_a_promotion_belongs_to_the_text_of_its_fault(event, text):
    """Results and history have it beside the workload."""
    assert str(event) == text


@pytest.mark.parametrize("spec", [ASYNC, ClusterSpec("semisync", nodes=2, proxy="haproxy")], ids=str)
def test_a_promotion_leaves_the_load_a_server(spec):
    """Clients follow the new primary through the proxy."""
    event, kind = Kill("writer", then=Promote()), topology(spec.topology)
    event.check(spec, kind)

    assert event.leaves_load(spec, kind, only_writer=False)


@pytest.mark.parametrize(
    ("event", "spec", "fact"),
    [
        (Kill(then="promote"), ASYNC, "then='promote': it accepts Promote() or None"),
        (Kill(restart="at once", then=Promote()), ASYNC, "the server starts after the load"),
        (Kill("other", then=Promote()), ASYNC, 'only the loss of the primary needs it: use "writer"'),
        (Kill(then=Promote()), ClusterSpec("galera", nodes=3, proxy="haproxy"), "has no replica to promote"),
        (Kill(then=Promote()), ClusterSpec("async_replication", nodes=2), 'use proxy="haproxy"'),
        (Kill(then=Promote("node4")), ASYNC, "has 3 nodes"),
        (Kill(then=Promote("node1")), ASYNC, '"most_advanced" or the name of a replica'),
        (Kill(then=Promote("other")), ASYNC, '"most_advanced" or the name of a replica'),
        (Kill(then=Promote(after=0)), ASYNC, "seconds above 0 and up to 300"),
        (Kill(then=Promote(errant="ignore")), ASYNC, 'it accepts "rebuild" or "refuse"'),
        (Kill(then=Promote()), ASYNC.with_options(log_slave_updates="OFF"), "with the option log_slave_updates"),
        (
            Kill(then=Promote()),
            ClusterSpec("async_replication", 2, ("mariadb:10.11", "mariadb:11.8"), proxy="haproxy"),
            "different releases",
        ),
    ],
)
def test_a_promotion_that_cannot_be_is_refused(event, spec, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(spec, topology(spec.topology))
    assert fact in str(caught.value)


def test_a_primary_that_answers_is_not_lost(standalone, monkeypatch):
    """Nothing is promoted beside a running primary."""
    monkeypatch.setattr(promote, "DETECTED_SECONDS", -29.5)
    with pytest.raises(NotReady, match="node1 answered"):
        Promote(after=30)._wait_detected(standalone.nodes[0], time.monotonic())


def test_a_primary_is_lost_after_seconds_without_an_answer(briefly):
    """The time is a field of the promotion."""
    cluster = briefly("standalone")
    cluster.nodes[0].kill()
    began = time.monotonic()
    Promote(after=0.4)._wait_detected(cluster.nodes[0], time.monotonic())

    assert time.monotonic() - began >= 0.4

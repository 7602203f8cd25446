"""Loss, jitter and rate of a path through a router: measured back, whatever else the machine does."""

from __future__ import annotations

import dataclasses
import re

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.network import NetworkNeeds

LOSSY = NetworkNeeds(rtt=0.04, loss=0.05, jitter=0.02)
SLOW = NetworkNeeds(rtt=0.005, rate=2e7)


def test_what_is_as_asked_is_no_error(same_path):
    """Of the nodes, which alone have it. A machine that does much else may say that it could not measure."""
    links = {link.pair: link.traffic for link in same_path.measured(LOSSY)}
    found = links["node1", "node2"]
    rate = same_path.measured(SLOW)[0].traffic.rate

    assert links["client", "node1"] is links["client", "node2"] is None
    assert found.loss.low <= 0.05 <= found.loss.high < 0.2
    assert found.jitter.unknown or found.jitter.low <= 0.02 <= found.jitter.high
    assert rate.unknown or rate.high > 1.8e7


@pytest.mark.parametrize(
    ("asked", "real", "said"),
    [
        (NetworkNeeds(rtt=0.04, loss=0.005), {"loss": 0.04}, "node1 and node2 lose "),
        (SLOW, {"rate": 1e9}, "node1 and node2 carry [0-9.]+ Mbit/s, and 20 Mbit/s were asked"),
    ],
)
def test_a_network_that_does_otherwise_is_an_error(same_path, monkeypatch, asked, real, said):
    """Whatever the router was told: what else runs on the machine loses nothing here, and makes no link faster."""
    otherwise(same_path, monkeypatch, real)

    with pytest.raises(ProvisionError, match=rf"not as the cluster asks for it \(.*\): {said}"):
        same_path.measured(asked)


@pytest.mark.parametrize(
    ("asked", "real", "said"),
    [
        (NetworkNeeds(rtt=0.04, jitter=0.03), {"jitter": 0.002}, "have round trips that vary by "),
        (SLOW, {"rate": 5e6}, "carry [0-9.]+ Mbit/s, and 20 Mbit/s were asked"),
    ],
)
def test_what_a_busy_machine_does_too_may_be_unknown(same_path, monkeypatch, asked, real, said):
    """It is an error, or could not be measured back, or the interval is so long that it has what the router does."""
    otherwise(same_path, monkeypatch, real)
    try:
        (found,) = filter(None, (link.traffic for link in same_path.measured(asked)))
    except ProvisionError as error:
        holds = re.search(f"node1 and node2 {said}", str(error))
    else:
        ((name, does),) = real.items()
        figure = getattr(found, name)
        holds = figure.unknown or figure.low <= does <= figure.high

    assert holds


def otherwise(path, monkeypatch, real):
    """Let the router do this wherever it is told to do something of the kind."""
    shape = path.shape

    def told(needs):
        change = {name: value for name, value in real.items() if getattr(needs, name)}
        shape(dataclasses.replace(needs, **change))

    monkeypatch.setattr(path, "shape", told)

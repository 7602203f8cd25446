"""Ctrl-C and SIGKILL of a run in containers: no process, no container, no network stays, and nothing of its files."""

from __future__ import annotations

import contextlib
import signal

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts.provisioners.container import engine
from tests.support import engines
from tests.support.kills import BUSY
from tests.whole.test_leaks import ENDLESS, SHORT, Run

MISSING = engines.missing() or engines.no_image("mariadb:10.11")

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING or "an engine and an image are there")


@pytest.fixture
def begin(request, tmp_path):
    """``begin(SHORT)``: a run whose cluster is in containers."""

    def begin(queries):
        made = Run(tmp_path, queries, {}, "--db-provisioner=container")
        request.addfinalizer(made.end)
        return made

    return begin


def left(run):
    """What there is of the run: processes, containers, networks, files."""
    with contextlib.closing(engine.connect()) as answering:
        made = [name for one in run.ids for name in engines.ours(answering, one)]
    return [*run.programs(), *made, *(str(path) for path in run.data.glob("*"))]


def test_ctrl_c_at_bring_up_leaves_nothing(begin):
    """When the prompt is back nothing of the run is there."""
    run = begin(SHORT)
    run.reach(run.running("mariadbd", "-standalone1"))
    assert any(name.startswith("dbcluster-") for name in left(run))

    run.process.send_signal(signal.SIGINT)
    run.process.wait(100)

    assert left(run) == []
    assert "KeyboardInterrupt" in (run.place / "out").read_text()


def test_sigkill_in_mid_round_leaves_nothing_within_seconds(begin):
    """Nobody is asked to clean up; the containers end with the connection to them, the network is removed."""
    run = begin(ENDLESS)
    run.reach(run.running("slap", "--query"))

    run.process.kill()
    run.process.wait(100)

    wait.until(lambda: left(run), "the end of everything", seconds=BUSY)

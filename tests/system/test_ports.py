"""Free ports: outside of the kernel's own range, and never the same for two runs."""

from __future__ import annotations

import secrets
import socket

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.system import ports
from pytest_dbcluster.system.ports import PortLocks
from tests.support import users

HOLD = """
import sys
from pytest_dbcluster.system import ports
ports.LOWEST, ports.HIGHEST = int(sys.argv[2]), int(sys.argv[2]) + 2
locks = ports.PortLocks(sys.argv[1])
print(locks.take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def few(monkeypatch):
    """Three ports are all there is."""
    low = next(n for n in range(20_000, 30_000) if all(ports.is_free(n + k) for k in range(3)))
    monkeypatch.setattr(ports, "LOWEST", low)
    monkeypatch.setattr(ports, "HIGHEST", low + 3)
    return [low, low + 1, low + 2]


@pytest.fixture
def name():
    """The beginning of names that no other run of this machine uses."""
    return f"pytest-dbcluster-test-{secrets.token_hex(4)}"


def test_a_port_lies_outside_of_the_kernels_own_range(name):
    """There any program may get it at any time."""
    low, high = ports.ephemeral_range()
    locks = PortLocks(name)
    taken = [locks.take() for _ in range(20)]
    locks.close()

    assert [port for port in taken if low <= port <= high] == []
    assert len(set(taken)) == 20


def test_a_port_is_found_where_the_kernel_assigns_all(name, monkeypatch):
    """As set on many database servers."""
    monkeypatch.setattr(ports, "ephemeral_range", lambda: (1024, 65535))
    locks = PortLocks(name)

    assert ports.LOWEST <= locks.take() < ports.HIGHEST
    locks.close()


def test_a_port_that_somebody_holds_is_not_chosen(name, few):
    """Neither one with a listening socket nor one that another run has locked."""
    one, other = PortLocks(name), PortLocks(name)
    with socket.socket() as held:
        held.bind(("127.0.0.1", few[1]))
        held.listen()
        first, second = one.take(), other.take()

        assert {first, second} == {few[0], few[2]}
        with pytest.raises(ProvisionError) as caught:
            other.take()
    for fact in ("no free port on 127.0.0.1", "200 attempts", f"grep {name} /proc/net/unix"):
        assert fact in str(caught.value)
    one.close()
    other.close()


def test_closing_gives_every_port_back(name, few):
    """To this run and to others."""
    one, other = PortLocks(name), PortLocks(name)
    assert sorted(one.take() for _ in range(3)) == few
    one.close()

    assert sorted(other.take() for _ in range(3)) == few
    other.close()


def test_all_users_see_who_holds_a_port(name, few, monkeypatch):
    """Whatever their TMPDIR is: it may be private, and the ports are not. The kernel's list shows the holder."""
    if reason := users.missing():
        pytest.skip(reason)
    monkeypatch.setattr(ports, "HIGHEST", few[0] + 2)
    with users.begin(users.ALICE, HOLD, name, few[0], loads=users.SYSTEM, TMPDIR="/nowhere") as alice:
        theirs = int(alice.stdout.readline())
        locks = PortLocks(name)
        ours = locks.take()
        with pytest.raises(ProvisionError):
            locks.take()
        with open("/proc/net/unix") as listed:  # noqa: PTH123  (a file of the kernel)
            assert f"@{name}-{theirs}\n" in listed.read()
        alice.stdin.close()
        alice.wait(20)

        assert {ours, locks.take()} == {few[0], few[0] + 1}
        assert ours != theirs
        locks.close()


def test_nothing_is_left_on_disk(name, tmp_path, monkeypatch):
    """There is no file to be made first, replaced by a link, or left by a killed run."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    locks = PortLocks(name)
    locks.take()

    assert list(tmp_path.iterdir()) == []
    locks.close()


def test_the_kernels_range_has_a_default(monkeypatch):
    """Where it cannot be read."""
    monkeypatch.setattr(ports.Path, "read_text", lambda path: "nonsense")

    assert ports.ephemeral_range() == (32_768, 60_999)

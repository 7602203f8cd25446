"""Free ports: outside of the kernel's own range, and never the same for two runs."""

from __future__ import annotations

import os
import socket

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.system import ports
from pytest_dbcluster.system.ports import PortLocks


@pytest.fixture
def few(monkeypatch):
    """Three ports are all there is."""
    low = next(n for n in range(20_000, 30_000) if all(ports.is_free(n + k) for k in range(3)))
    monkeypatch.setattr(ports, "LOWEST", low)
    monkeypatch.setattr(ports, "HIGHEST", low + 3)
    return [low, low + 1, low + 2]


def test_a_port_lies_outside_of_the_kernels_own_range(tmp_path):
    """There any program may get it at any time."""
    low, high = ports.ephemeral_range()
    locks = PortLocks(tmp_path)
    taken = [locks.take() for _ in range(20)]
    locks.close()

    assert [port for port in taken if low <= port <= high] == []
    assert len(set(taken)) == 20


def test_a_port_that_somebody_holds_is_not_chosen(tmp_path, few):
    """Neither one with a listening socket nor one that another run has locked."""
    one, other = PortLocks(tmp_path), PortLocks(tmp_path)
    with socket.socket() as held:
        held.bind(("127.0.0.1", few[1]))
        held.listen()
        first, second = one.take(), other.take()

        assert {first, second} == {few[0], few[2]}
        with pytest.raises(ProvisionError) as caught:
            other.take()
    assert str(caught.value) == f"no free port on 127.0.0.1 in 200 attempts (locks in {tmp_path})"
    one.close()
    other.close()


def test_closing_gives_every_port_back(tmp_path, few):
    """To this run and to others."""
    one, other = PortLocks(tmp_path), PortLocks(tmp_path)
    assert sorted(one.take() for _ in range(3)) == few
    one.close()

    assert sorted(other.take() for _ in range(3)) == few
    other.close()


def test_a_lock_of_another_user_is_respected(tmp_path, few, monkeypatch):
    """A file that cannot be opened belongs to somebody whose port it may be."""
    locks = PortLocks(tmp_path)
    opened = os.open

    def refuse(path, *how, **more):
        if path == f"{few[0]}.lock":
            raise PermissionError
        return opened(path, *how, **more)

    monkeypatch.setattr(os, "open", refuse)

    assert {locks.take(), locks.take()} == {few[1], few[2]}
    locks.close()


def test_no_link_is_followed(tmp_path, few):
    """Any user may put one where the locks are: the directory is refused, and a port whose lock is one is not ours."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / f"{few[0]}.lock").symlink_to("victim")
    with pytest.raises(ProvisionError) as caught:
        PortLocks(tmp_path / "link").take()

    assert str(caught.value).endswith(f"remove it: rm {tmp_path / 'link'}")
    assert (tmp_path / "elsewhere").stat().st_mode & 0o7777 == 0o700
    locks = PortLocks(tmp_path)
    assert {locks.take(), locks.take()} == {few[1], few[2]}
    assert not (tmp_path / "victim").exists()
    locks.close()


def test_the_kernels_range_has_a_default(monkeypatch):
    """Where it cannot be read."""
    monkeypatch.setattr(ports.Path, "read_text", lambda path: "nonsense")

    assert ports.ephemeral_range() == (32_768, 60_999)

"""Messages on guests and networks that cannot be made, as users read them."""

from __future__ import annotations

import os
import types

from pytest_dbcluster import formatting
from pytest_dbcluster.hosts import given, provisioner
from pytest_dbcluster.hosts.guests import guest, user_namespace
from pytest_dbcluster.hosts.guests.disk import Disk
from pytest_dbcluster.hosts.network import kernel_settings
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import golden

SPEC = ClusterSpec("standalone")


def file_system(free, noexec=False):
    """The state of a file system with so many free bytes."""
    return types.SimpleNamespace(f_flag=os.ST_NOEXEC * noexec, f_bavail=free, f_frsize=1)


def test_messages_on_guests_and_their_networks(tmp_path, monkeypatch):
    """They say what is missing, where, and what to do next."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(os, "statvfs", lambda _: file_system(2**20, noexec=True))
    seen = {"memory is noexec": guest.no_memory(2**30)}
    monkeypatch.setattr(os, "statvfs", lambda _: file_system(2**20))
    seen["memory is short"] = guest.no_memory(2**30)
    monkeypatch.undo()
    disk = Disk(tmp_path / "disk", 2**20)
    held = disk.open()
    seen["a disk is in use"] = golden.message_of(disk.open)
    os.close(held)
    seen["a disk cannot be made"] = golden.message_of(Disk(tmp_path / "none" / "disk", 2**20).open)
    off = {"kernel.unprivileged_userns_clone": "0"}
    seen["a setting forbids namespaces"] = user_namespace.why_forbidden("", lambda name: off.get(name, ""))
    refused = "unshare: Operation not permitted"
    seen["a container forbids namespaces"] = user_namespace.why_forbidden(refused, lambda _: "")
    seen["namespaces are used up"] = user_namespace.why_forbidden("No space left on device", lambda _: "8")
    seen["a guest has one CPU"] = GuestProvisioner().unmet(SPEC.with_needs(cores=2))
    seen["tc prints another form"] = golden.message_of(kernel_settings.read, "qdisc noqueue 0: dev lo")
    seen["an image is given"] = golden.message_of(provisioner.parse_images, ["mariadb:11.8=x"], "local")
    seen["an image is wrong"] = golden.message_of(provisioner.parse_images, ["mariadb"], "container")
    seen["a wait is wrong"] = golden.message_of(formatting.option_seconds, "--db-wait", "soon")
    settings = types.SimpleNamespace(ttl=3600.0)
    seen["a budget is too long"] = golden.message_of(given.run_budget, 7200.0, {"settings": settings})

    golden.compare("guests_and_networks", seen, {tmp_path: "TMP"})

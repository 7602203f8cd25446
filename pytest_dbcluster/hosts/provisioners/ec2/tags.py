"""The tags of everything that a launch makes. A reaper finds resources by them, without a local record."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.hosts.provisioners.ec2.plan import Plan
from pytest_dbcluster.hosts.provisioners.ec2.settings import TAG_PREFIX
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.system import processes

RUN_TAG, OWNER_TAG, EXPIRES_TAG, LAUNCH_TAG = (f"{TAG_PREFIX}{key}" for key in ("run", "owner", "expires", "launch"))
KEPT_TAG = f"{TAG_PREFIX}kept"  # marks instances that outlive the process that launched them
BOOT = "/proc/sys/kernel/random/boot_id"  # random(4): another one after each boot
TIME = "%Y-%m-%dT%H:%M:%SZ"


def name(run_id: str) -> str:
    """The name of the key, the groups and the instances of a run."""
    return f"dbcluster-{run_id}"


def tags_of(plan: Plan, more: Mapping[str, str]) -> dict[str, str]:
    """The tags of everything that a launch makes. more: the user's tags."""
    expires = time.strftime(TIME, time.gmtime(plan.expires))
    own = {RUN_TAG: plan.run_id, OWNER_TAG: owner(), EXPIRES_TAG: expires, LAUNCH_TAG: str(plan.number)}
    return {**more, "Name": name(plan.run_id), **own}


def owner() -> str:
    """The owner of instances, as the value of a tag: ``USER@CONTROLLER/PROCESS/START/NAMESPACE``.

    The last three identify this process: its id, its start in ticks since boot, and ``pid_namespace``.
    """
    return f"{user()}/{os.getpid()}/{processes.start_ticks(os.getpid())}/{pid_namespace()}"


def pid_namespace() -> str:
    """Where process ids are valid: the first digits of the boot id, and the number of the PID namespace.

    The first namespace has the same number on all machines, and machines of one image may have the same name.
    """
    return f"{Path(BOOT).read_text()[:8]}-{Path('/proc/self/ns/pid').stat().st_ino}"


def user() -> str:
    """The first part of ``owner``, the same for all runs of a user on a controller."""
    return re.sub(r"[^\w.@-]", "_", remote_programs.user(), flags=re.ASCII)[:200]

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

RUN_TAG, OWNER_TAG, EXPIRES_TAG, LAUNCH_TAG = (f"{TAG_PREFIX}{key}" for key in ("run", "owner", "expires", "launch"))
KEPT_TAG = f"{TAG_PREFIX}kept"  # marks instances that outlive the process that launched them
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
    """The owner of instances, as the value of a tag: ``USER@CONTROLLER/PROCESS/NAMESPACE``.

    The last two identify this process on the controller: its id, and the number of its PID namespace.
    """
    return f"{user()}/{os.getpid()}/{Path('/proc/self/ns/pid').stat().st_ino}"


def user() -> str:
    """The first part of ``owner``, the same for all runs of a user on a controller."""
    return re.sub(r"[^\w.@-]", "_", remote_programs.user(), flags=re.ASCII)[:200]

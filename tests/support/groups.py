"""Control groups of made-up runs, beside other runs of this machine that remove groups which nobody uses."""

import contextlib

import pytest

from pytest_dbcluster.system import cgroups


def fill(group, pid):
    """Make a group that holds a process. Another run may reap it while it is empty: then it is made once more."""
    for _ in range(100):
        group.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):
            cgroups.write(group / "cgroup.procs", str(pid))
        if pid in cgroups.members(group):
            return
    pytest.fail(f"{group} is removed each time, or takes no process")

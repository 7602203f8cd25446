"""Events: what happens to a cluster while a workload runs, for ``measure.event``.

- ``Kill``: a server's process ends at once.
- ``Pause``: a server's process is stopped for some seconds.
- ``SwitchPrimary``: another node becomes the primary while all nodes run.
- ``Promote``: a replica becomes the primary after the loss of the primary, as ``then=`` of a fault.
- ``Nothing``: the control, in which nothing happens.
"""

from __future__ import annotations

from pytest_dbcluster.clusters.events.event import Event
from pytest_dbcluster.clusters.events.faults.kill import Kill
from pytest_dbcluster.clusters.events.faults.pause import Pause
from pytest_dbcluster.clusters.events.nothing import Nothing
from pytest_dbcluster.clusters.events.roles.promote import Promote
from pytest_dbcluster.clusters.events.roles.switch_primary import SwitchPrimary

__all__ = ["Event", "Kill", "Nothing", "Pause", "Promote", "SwitchPrimary"]

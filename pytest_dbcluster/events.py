"""Events: what happens to a cluster while a workload runs, for ``measure.event``.

- ``Kill``, ``KillAll``, ``KillProxy``: the process of a server, of all servers or of the proxy ends at once.
- ``Pause``: a server's process is stopped for some seconds.
- ``Isolate``: a host is cut off from its peers, or also from clients, for some seconds.
- ``LoseHost``: a host is gone until the load has ended.
- ``PowerCut``: hosts lose their power and what they had not flushed.
- ``FillDisk``, ``SlowDisk``: a disk is full, or slow, for some seconds.
- ``Rtt``: the nodes are farther apart for some seconds.
- ``SwitchPrimary``: another node becomes the primary while all nodes run.
- ``Promote``: a replica becomes the primary after the loss of the primary, as ``then=`` of a fault.
- ``FailOver``: a standby takes over after the loss of the server, as with DRBD.
- ``Alter``: a schema change.
- ``LargeTransaction``: a transaction that writes many rows.
- ``Backup``: a backup of one node.
- ``Rolling``: one node after the other: ``Restart``, ``SetOptions`` or ``Upgrade``.
- ``Join``: a node that was shut down joins again.
- ``Nothing``: the control, in which nothing happens.
"""

from __future__ import annotations

from pytest_dbcluster.clusters.events.event import Event
from pytest_dbcluster.clusters.events.faults.fill_disk import FillDisk
from pytest_dbcluster.clusters.events.faults.isolate import Isolate
from pytest_dbcluster.clusters.events.faults.kill import Kill
from pytest_dbcluster.clusters.events.faults.kill_all import KillAll
from pytest_dbcluster.clusters.events.faults.kill_proxy import KillProxy
from pytest_dbcluster.clusters.events.faults.lose_host import LoseHost
from pytest_dbcluster.clusters.events.faults.pause import Pause
from pytest_dbcluster.clusters.events.faults.power_cut import PowerCut
from pytest_dbcluster.clusters.events.faults.rtt import Rtt
from pytest_dbcluster.clusters.events.faults.slow_disk import SlowDisk
from pytest_dbcluster.clusters.events.maintenance.alter import Alter
from pytest_dbcluster.clusters.events.maintenance.backup import Backup
from pytest_dbcluster.clusters.events.maintenance.join import Join
from pytest_dbcluster.clusters.events.maintenance.large_transaction import LargeTransaction
from pytest_dbcluster.clusters.events.maintenance.rolling import Rolling
from pytest_dbcluster.clusters.events.maintenance.steps import Restart, SetOptions, Upgrade
from pytest_dbcluster.clusters.events.nothing import Nothing
from pytest_dbcluster.clusters.events.roles.fail_over import FailOver
from pytest_dbcluster.clusters.events.roles.promote import Promote
from pytest_dbcluster.clusters.events.roles.switch_primary import SwitchPrimary

__all__ = [
    "Alter",
    "Backup",
    "Event",
    "FailOver",
    "FillDisk",
    "Isolate",
    "Join",
    "Kill",
    "KillAll",
    "KillProxy",
    "LargeTransaction",
    "LoseHost",
    "Nothing",
    "Pause",
    "PowerCut",
    "Promote",
    "Restart",
    "Rolling",
    "Rtt",
    "SetOptions",
    "SlowDisk",
    "SwitchPrimary",
    "Upgrade",
]

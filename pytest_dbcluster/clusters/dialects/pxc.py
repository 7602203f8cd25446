"""The dialect of Percona XtraDB Cluster (PXC): the fields that differ from MySQL's. Data only.

It is untried: nobody has reported a run of it to us. It comes from Percona's documentation and scripts:

- variables: https://docs.percona.com/percona-xtradb-cluster/8.4/wsrep-system-index.html
- strict mode: https://docs.percona.com/percona-xtradb-cluster/8.4/strict-mode.html
- state transfers: https://docs.percona.com/percona-xtradb-cluster/8.4/xtrabackup-sst.html
- accounts and start: https://github.com/percona/percona-docker (percona-xtradb-cluster-8.4 at 4a70f863)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.clusters.dialects.dialect import GaleraDialect
from pytest_dbcluster.clusters.dialects.mysql import DROP_OTHERS, MYSQL

_STRICT = "pxc_strict_mode"

_GALERA = GaleraDialect(
    every={},  # wsrep_on is a variable of sessions only: no option, and no global variable
    preset={
        # The default depends on how a node starts: DISABLED for a node that bootstraps, ENFORCING for all others.
        _STRICT: "ENFORCING",
        # The default is ON. Servers of other vendors do not encrypt this traffic unless they are told to.
        "pxc_encrypt_cluster_traffic": "OFF",
        "pxc_maint_transition_period": "1",  # seconds that a shutdown waits for ProxySQL; the default is 10
    },
    transfer="xtrabackup-v2",  # the only method
    has_account=False,  # each transfer makes its own account; wsrep_sst_auth is an unknown option
    appliers=("wsrep_applier_threads", "wsrep_slave_threads"),  # renamed in 8.0.26; both names show one value
    position=("--log-error-verbosity=3",),  # the position is a note, and notes are not in the log by default
    # The entry point of Percona's image makes its accounts in this way, too.
    alone=("--wsrep-provider=none",),
    not_probed=frozenset({"wsrep_cluster_address", "wsrep_provider", "wsrep_provider_options", "wsrep_start_position"}),
    keyless={_STRICT: ("ENFORCING", "MASTER")},
)

PXC: Mapping[str, Any] = {
    # Group Replication cannot run beside Galera, and strict mode refuses it.
    "plugins": tuple(name for name in MYSQL.plugins if name != "group_replication.so"),
    # PXC itself makes these accounts and roles.
    "drop_others": DROP_OTHERS.format(
        more=", 'mysqlxsys', 'mysql.pxc.internal.session', 'mysql.pxc.sst.role'", user="{user}", load="{load}"
    ),
    "galera": _GALERA,
}

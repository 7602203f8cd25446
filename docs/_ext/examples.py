"""Examples of the reference that no code has: a value of each option, and a claim for each counter and metric."""

from __future__ import annotations

from collections.abc import Mapping

# Option -> the example of its value and what follows; empty for an option without a value.
OPTIONS: Mapping[str, str] = {
    "--db-release": "mariadb:10.11 --db-release mariadb:11.8",
    "--db-provisioner": "container",
    "--db-host": "admin@db1 --db-host admin@db2 --db-provisioner ssh",
    "--db-load-host": "admin@load --db-host admin@db1 --db-provisioner ssh",
    "--db-host-keys": "known_hosts",
    "--db-ssh-config": "ssh_config",
    "--db-host-directory": "/srv/tests",
    "--db-max-cost": "2 --db-provisioner ec2",
    "--db-ec2-type": "r6i.xlarge",
    "--db-ec2-load-type": "c6i.xlarge",
    "--db-ec2-zone": "eu-central-1a --db-ec2-zone eu-central-1b",
    "--db-ec2-subnet": "subnet-0123456789abcdef0",
    "--db-ec2-jump": "admin@jump.example.org",
    "--db-ec2-image": "ami-0123456789abcdef0",
    "--db-ec2-volume": "gp3:100:6000:250",
    "--db-ec2-written": "16",
    "--db-ec2-ttl": "4h",
    "--db-ec2-spot": "",
    "--db-ec2-price": "ipv4=0.005",
    "--db-ec2-tag": "team=databases",
    "--db-ec2-from": "192.0.2.0/24",
    "--db-image": "mysql:9.7=registry.example.org/mysql:9.7",
    "--db-storage": "gp2-3000",
    "--db-profile": "paper",
    "--db-parity": "normalised",
    "--db-cnf": "conf/base.cnf",
    "--db-cnf-root": "copy-of-db1",
    "--db-max-pairs": "40",
    "--db-budget": "300",
    "--db-run-budget": "3600",
    "--db-wait": "2h",
    "--db-alpha": ".0001",
    "--db-seed": "813",
    "--db-strict": "",
    "--db-keep": "",
    "--db-results": "reports/tuning",
    "--db-resume": "",
    "--db-history": "reports/history.jsonl",
    "--db-history-strict": "--db-history reports/history.jsonl",
    "--db-github": "",
}

# Counter -> the variant in which it is lower, the other one, and why. A counter per commit has those of its counter.
COUNTERS: Mapping[str, tuple[str, str, str]] = {
    "fsyncs": ("flush_2", "default", "`innodb_flush_log_at_trx_commit=2` does not flush at each commit"),
    "log_fsyncs": ("flush_2", "default", "`innodb_flush_log_at_trx_commit=2` does not flush at each commit"),
    "log_waits": ("large_buffer", "small_buffer", "a larger `innodb_log_buffer_size` has room for more"),
    "log_writes": ("flush_0", "default", "`innodb_flush_log_at_trx_commit=0` writes once a second"),
    "log_bytes": ("one_index", "three_indexes", "each index of a table adds to the log"),
    "pages_written": ("large_log", "small_log", "a larger log lets a page change more often before it is written"),
    "pages_read": ("large_pool", "small_pool", "a larger buffer pool keeps more pages"),
    "row_lock_waits": ("read_committed", "repeatable_read", "fewer locks are kept until the commit"),
    "row_lock_time_ms": ("read_committed", "repeatable_read", "fewer locks are kept until the commit"),
    "deadlocks": ("read_committed", "repeatable_read", "fewer locks are kept until the commit"),
    "rows_inserted": ("one_row", "two_rows", "a workload with half the inserts"),
    "rows_read": ("indexed", "unindexed", "an index reads only the rows that are asked for"),
    "rows_updated": ("one_row", "two_rows", "a workload with half the updates"),
    "binlog_fsyncs": ("sync_0", "sync_1", "`sync_binlog=0` leaves the flush to the operating system"),
    "binlog_bytes": ("minimal", "full", "`binlog_row_image=MINIMAL` writes only changed columns"),
    "binlog_commits": ("without_binlog", "with_binlog", "a server without `log_bin` writes none"),
    "binlog_groups": ("delayed", "default", "`binlog_commit_wait_usec` collects more commits in a group"),
    "paused_ns": ("four_appliers", "one_applier", "more applier threads keep the receive queue short"),
    "paused_share": ("four_appliers", "one_applier", "more applier threads keep the receive queue short"),
    "flow_control_sent": ("four_appliers", "one_applier", "more applier threads keep the receive queue short"),
    "bf_aborts": ("one_writer", "all_nodes", "writes on one node wait for locks in place of conflicts"),
    "cert_failures": ("one_writer", "all_nodes", "writes on one node wait for locks in place of conflicts"),
    "certified": ("reads", "mixed", "statements that only read are not certified"),
    "conflicts": ("single_primary", "multi_primary", "writes on one member wait for locks in place of conflicts"),
    "replicated": ("reads", "mixed", "statements that only read are not replicated"),
    "replicated_bytes": ("minimal", "full", "`binlog_row_image=MINIMAL` sends only changed columns"),
    "received": ("reads", "mixed", "statements that only read are not replicated"),
    "rolled_back": ("single_primary", "multi_primary", "writes on one member wait for locks in place of conflicts"),
    "local_commits": ("reads", "mixed", "statements that only read commit nothing on the node"),
    "causal_reads": ("default", "synced", "`wsrep_sync_wait=0` waits for nothing"),
    "semisync_acknowledged": ("asynchronous", "semisync", "asynchronous replication waits for no replica"),
    "semisync_unacknowledged": ("long_timeout", "short_timeout", "a longer timeout waits for slow replicas"),
    "semisync_waits": ("asynchronous", "semisync", "asynchronous replication waits for no replica"),
    "semisync_wait_us": ("near", "far", "an acknowledgement takes a round trip"),
    "connections": ("pooled", "reconnecting", "a workload that keeps its connections opens fewer"),
    "turned_away": ("many_connections", "few_connections", "a larger `max_connections` refuses fewer clients"),
    "aborted_connects": ("many_connections", "few_connections", "a larger `max_user_connections` refuses fewer"),
    "questions": ("prepared", "text", "a workload with fewer statements in a transaction"),
    "cert_deps_distance": ("hot_row", "many_rows", "writes to one row depend on each other"),
    "cert_queue": ("one_client", "many_clients", "fewer transactions arrive at once"),
    "cert_rows": ("one_client", "many_clients", "fewer rows are written before all members have them"),
    "recv_queue_max": ("four_appliers", "one_applier", "more applier threads keep the receive queue short"),
    "send_queue_max": ("near", "far", "a shorter round trip empties the queue sooner"),
    "applier_queue": ("four_workers", "one_worker", "more `replica_parallel_workers` apply more at once"),
    "appliers": ("one_applier", "four_appliers", "`wsrep_slave_threads` sets their number"),
    "history_list": ("four_purgers", "one_purger", "more `innodb_purge_threads` remove old versions sooner"),
    "checkpoint_age": ("small_log", "large_log", "a smaller log forces pages to disk sooner"),
    "dirty_pages": ("eager", "default", "a smaller `innodb_max_dirty_pages_pct` writes pages sooner"),
    "drain_seconds": ("four_appliers", "one_applier", "more applier threads finish the backlog sooner"),
    "abort_share": ("one_writer", "all_nodes", "writes on one node wait for locks in place of conflicts"),
    "retries": ("one_writer", "all_nodes", "writes on one node wait for locks in place of conflicts"),
}

# Server or tool that can be fetched -> what it is.
PRODUCTS: Mapping[str, str] = {
    "mariadb": "A release of MariaDB, with its Galera library and the programs of its state transfers.",
    "mysql": "A release of MySQL, with the plugins for Group Replication, semi-sync and clone.",
    "percona": "A release of Percona Server for MySQL.",
    "pxc": "A release of Percona XtraDB Cluster, with its Galera library and the scripts of its state transfers.",
    "haproxy": 'The proxy of clusters with `proxy="haproxy"`.',
    "sysbench": "The load generator of `SysBench` and `TPCC`.",
    "vm": "The kernel and the root file system of guests.",
    "stand-in": "The root file system of stand-in hosts, on which the plugin tests ssh.",
}

# Metric -> a claim that uses it.
METRICS: Mapping[str, str] = {
    "throughput": "flush_2.beats(default)",
    "goodput": 'one_writer.beats(all_nodes, metric="goodput")',
    "drained_throughput": 'four_appliers.beats(one_applier, metric="drained_throughput")',
    "drained_goodput": 'four_appliers.beats(one_applier, metric="drained_goodput")',
    "p50": 'near.beats(far, metric="p50:order:7")',
    "p95": 'new.no_slower_than(old, by=0.1, metric="p95")',
    "p99": 'new.no_slower_than(old, by=0.2, metric="p99:new_order")',
    "p999": 'new.no_slower_than(old, by=0.3, metric="p999")',
    "stall": 'galera.below("stall", 8)',
    "without_commit": 'quick.shorter("without_commit", than=usual, seconds=1)',
    "read_stall": 'galera.below("read_stall", 1)',
    "lost": "galera.loses_nothing()",
}

# Kind of claim -> a call of it.
CLAIMS: Mapping[str, str] = {
    "beats": "assert flush_2.beats(default, by=0.1)",
    "below": 'assert galera.below("stall", 8)',
    "differs": "flush_2.against(default)",
    "fades": "assert fades((one, one_far), (many, many_far), by=0.1)",
    "loses_nothing": "assert galera.loses_nothing()",
    "lower": 'assert flush_2.lower("fsyncs_per_commit", than=default)',
    "no_slower_than": "assert new.no_slower_than(old, by=0.05)",
    "ordered": "assert ordered(slow, middle, fast, step=0.05)",
    "same_as": "assert new.same_as(old, within=0.05)",
    "scales": "assert four.scales(one, at_least=2)",
    "shorter": 'assert quick.shorter("stall", than=usual, seconds=2)',
}

# Topology, proxy, workload -> an example of its use.
TOPOLOGIES: Mapping[str, str] = {
    "async_replication": 'ClusterSpec("async_replication", nodes=2)',
    "drbd": 'ClusterSpec("drbd", nodes=2)',
    "galera": 'ClusterSpec("galera", nodes=3)',
    "group_replication": 'ClusterSpec("group_replication", nodes=3, release="mysql:9.7")',
    "semisync": 'ClusterSpec("semisync", nodes=3)',
    "standalone": 'ClusterSpec("standalone")',
}
PROXIES: Mapping[str, str] = {
    "haproxy": 'ClusterSpec("galera", nodes=3, proxy="haproxy")',
    "mysql_router": 'ClusterSpec("group_replication", nodes=3, release="mysql:9.7", proxy="mysql_router")',
}
WORKLOADS: Mapping[str, str] = {
    "LuaScript": 'LuaScript("bench/visits.lua", options={"pages": 5000}, threads=16)',
    "MySQLSlap": 'MySQLSlap("write", concurrency=50)',
    "SQLFiles": 'SQLFiles("shop", threads=16)',
    "SysBench": 'SysBench("oltp_read_write", threads=16)',
    "TPCC": "TPCC(warehouses=2, threads=16)",
}

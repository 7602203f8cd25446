"""Options that belong to a host, not to a server's speed: left out if a my.cnf comes from another host."""

from __future__ import annotations

from pytest_dbcluster.clusters.servers import path_options

# pytest-dbcluster sets these for each node, and a spec's options must not have them. The last four lines open a port,
# move one, or let other machines in: clusters of this machine listen only on 127.0.0.1.
OURS = frozenset(
    """
    datadir port socket log_error pid_file tmpdir bind_address basedir plugin_dir lc_messages_dir character_sets_dir
    wsrep_provider wsrep_cluster_name wsrep_cluster_address wsrep_node_name wsrep_node_address wsrep_sst_auth
    wsrep_sst_receive_address init_file server_id report_host report_port group_replication_bootstrap_group
    group_replication_force_members group_replication_group_name group_replication_group_seeds
    group_replication_local_address group_replication_start_on_boot mysqlx skip_networking
    admin_address admin_port create_admin_listener_thread extra_port group_replication_ip_allowlist
    group_replication_ip_whitelist handlersocket_address handlersocket_port handlersocket_port_wr mysqlx_bind_address
    mysqlx_port wsrep_provider_base_host wsrep_provider_base_port wsrep_provider_gmcast_listen_addr
    wsrep_provider_gmcast_mcast_addr wsrep_provider_gmcast_peer_addr wsrep_provider_ist_recv_addr
    wsrep_provider_ist_recv_bind
    """.split()  # noqa: SIM905  (a list of fifty quoted words is no easier to read)
)
# Who may connect, what is replicated, who may write: these belong to the host, not to the tuning.
_PLACE = frozenset(
    """
    authentication_policy auto_generate_certs auto_increment_increment auto_increment_offset
    binlog_do_db binlog_ignore_db bootstrap console daemonize default_time_zone feedback
    file_key_management gtid_domain_id help init_rpl_role initialize initialize_insecure log_error_services
    master_host master_password master_port master_user
    named_pipe offline_mode proxy_protocol_networks pxc_maint_mode read_only replicate_do_db replicate_do_table
    replicate_ignore_db replicate_ignore_table replicate_rewrite_db replicate_same_server_id replicate_wild_do_table
    replicate_wild_ignore_table report_password report_user require_secure_transport server_uuid skip_grant_tables
    skip_replica_start skip_slave_start ssl ssl_cipher ssl_fips_mode super_read_only syslog tc_heuristic_recover
    tls_ciphersuites tls_version transaction_read_only user validate_config version wsrep_gtid_domain_id wsrep_gtid_mode
    wsrep_new_cluster wsrep_node_incoming_address wsrep_on wsrep_recover wsrep_start_position
    """.split()  # noqa: SIM905  (a list of sixty quoted words is no easier to read)
)
_PLACE_PREFIXES = (
    "admin_ssl_", "admin_tls_", "aws_key_management_", "feedback_", "file_key_management_", "group_replication_ip_",
    "hashicorp_key_management_", "keyring_", "mysqlx_", "server_audit_syslog_", "syseventlog_", "wsrep_sst_",
)  # fmt: skip
_KNOWN = OURS | _PLACE | path_options.LEFT_OUT
# Values that send a server's audit records to the log of the machine.
_OUTWARD = {"server_audit_output_type": "syslog"}
# Libraries of plugins that read keys or certificates of the host, or send its data elsewhere.
PLUGINS = ("feedback", "file_key_management", "hashicorp_key_management", "aws_key_management", "keyring_")


def of_host(name: str, value: str = "") -> bool:
    """Return whether a normal option name belongs to the host of its my.cnf, with or without prefixes (``skip_``).

    Some options belong to the host only with a certain ``value``.
    """
    names = path_options.bases(path_options.name_after_dot(name))
    return any(
        base in _KNOWN or base.startswith(_PLACE_PREFIXES) or (base in _OUTWARD and value.lower() == _OUTWARD[base])
        for base in names
    )

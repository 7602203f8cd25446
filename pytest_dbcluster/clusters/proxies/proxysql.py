"""ProxySQL: it logs clients in itself, and sends each statement to a server of the group of its port. Untried.

Its settings come from https://proxysql.com/documentation/configuration-file and from the page about main tables there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pytest_dbcluster.clusters.installed_proxy import InstalledProxy, Routes
from pytest_dbcluster.clusters.proxy import MOST_CONNECTIONS
from pytest_dbcluster.clusters.servers.node import LOAD

GROUPS = {"writer": 0, "reader": 1}  # of servers ("hostgroups")
ADMINISTRATOR = "proxysql-admin"  # no account of the servers may have this name
CONFIGURATION = """\
datadir = "{directory}"
admin_variables = {{ admin_credentials = "{administrator}:{password}" mysql_ifaces = "{address}:{admin}" }}
mysql_variables =
{{
    interfaces = "{address}:{writer};{address}:{reader}"
    max_connections = {most}
    monitor_username = "{user}"
    monitor_password = "{password}"
}}
mysql_servers = ( {servers} )
mysql_users = ( {users} )
mysql_query_rules = ( {rules} )
"""
SERVER = '{{ address = "{address}" port = {port} hostgroup = {group} max_connections = {most} }}'
# transaction_persistent: a transaction stays on one server.
USER = '{{ username = "{user}" password = "{password}" default_hostgroup = 0 transaction_persistent = 1 }}'
RULE = "{{ rule_id = {number} active = 1 proxy_port = {port} destination_hostgroup = {group} apply = 1 }}"


class ProxySQL(InstalledProxy):
    """One proxysql."""

    name = "proxysql"
    usual_ports: ClassVar[Mapping[str, int]] = {"writer": 6033, "reader": 6034, "admin": 6032}

    def settings(self, address: str, directory: str, routes: Routes) -> str:
        """Return the text of proxysql.cnf: a group of servers for each listener, and a rule that leads to it."""
        user, password = self.account
        chosen = {"writer": routes["writer"][:1], "reader": routes["reader"]}
        servers = [
            SERVER.format(address=node.host.address, port=node.port, group=GROUPS[role], most=MOST_CONNECTIONS)
            for role, nodes in chosen.items()
            for node in nodes
        ]
        rules = [
            RULE.format(number=number, port=self._ports[role], group=group)
            for number, (role, group) in enumerate(GROUPS.items(), start=1)
        ]
        return CONFIGURATION.format(
            address=address,
            directory=directory,
            administrator=ADMINISTRATOR,
            user=user,
            password=password,
            most=MOST_CONNECTIONS * len(GROUPS),
            servers=", ".join(servers),
            users=", ".join(USER.format(user=one, password=password) for one in (user, LOAD)),
            rules=", ".join(rules),
            **self._ports,
        )

    def command(self, program: Path, directory: str) -> list[str]:
        """Return the command: in the foreground, and with the file in place of an earlier database."""
        return [str(program), "--initial", "-f", "-D", directory, "-c"]


PROXY = ProxySQL

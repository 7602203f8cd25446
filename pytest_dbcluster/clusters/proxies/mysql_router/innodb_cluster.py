"""InnoDB Cluster: a replication group that MySQL Shell has adopted, and a router that reads its roles from the group.

Only MySQL Shell (mysqlsh) can write the metadata that ``mysqlrouter --bootstrap`` reads. It writes the metadata before
the router starts, through the group like any other transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.redaction import redact
from pytest_dbcluster.releases.find import find_program
from pytest_dbcluster.releases.release import Release

SHELL = "mysqlsh"
NAME = "dbcluster"  # the name of the cluster, and of the router, in the metadata
ADOPT_SECONDS, BOOTSTRAP_SECONDS = 120.0, 60.0

# disableClone: otherwise the shell installs a plugin in the primary only, and the primary has variables that no other
# node has.
# stats_updates_frequency: otherwise the router writes to the group every 5 s, also during rounds and between the
# readings of a check; with 0 it writes only when it starts.
# https://www.percona.com/blog/mysql-router-8-4-how-to-deal-with-metadata-updates-overhead
ADOPT = """\
shell.connect({connection!r})
cluster = dba.create_cluster({name!r}, {options!r})
cluster.set_routing_option("stats_updates_frequency", 0)
"""
NOT_NEEDED = {"disableClone": True}
# Turn off unused listeners. A router that does not know one of these options does not have that listener either; the
# exception is the X protocol, whose listeners then get separate ports.
LEFT_OUT = ("--disable-rest", "--disable-rw-split", "--conf-skip-x-protocol")
UNUSED = {"routing:bootstrap_x_rw": 6448, "routing:bootstrap_x_ro": 6449}
# The names of a bootstrapped router's listeners, by our roles.
LISTENERS = {"writer": "routing:bootstrap_rw", "reader": "routing:bootstrap_ro"}


def shell(release: Release) -> Path | None:
    """Return the path of MySQL Shell: beside the release's programs, on PATH, or of a cached MySQL release.

    None if there is none.
    """
    return release.path_of(SHELL) or find_program(SHELL, "mysql", on_path=not release.image)


def adopt(host: Host, program: Path, primary: Node, adoption: Mapping[str, object]) -> None:
    """Make the running group of this primary an InnoDB Cluster; ``adoption`` are options of dba.create_cluster.

    MySQL Shell (``program``) runs on ``host`` and keeps its files there. Raises ProvisionError with its output.
    """
    endpoint = primary.endpoint
    connection = {"scheme": "mysql", "host": endpoint.host, "port": endpoint.port, "user": endpoint.user}
    script = ADOPT.format(
        connection={**connection, "password": endpoint.password}, name=NAME, options={**adoption, **NOT_NEEDED}
    )
    try:
        host.run(
            [str(program), "--py", "--no-wizard"],
            seconds=ADOPT_SECONDS,
            environment={"MYSQLSH_USER_CONFIG_HOME": host.directory, "MYSQLSH_TERM_COLOR_MODE": "nocolor"},
            text=script,
        )
    except CommandFailed as error:
        raise ProvisionError(
            f"could not make the group of {primary.name} an InnoDB Cluster: {redact(str(error))}; "
            f"to use static routes, remove {SHELL} from PATH, from the release's programs and from the cache"
        ) from None


def bootstrap(host: Host, router: Path, primary: Node, settings: Mapping[str, object]) -> str:
    """Bootstrap a router for the InnoDB Cluster of this primary; return the path of its configuration on the host.

    router: the path of mysqlrouter. settings: the router's options as SECTION.OPTION. This creates an account for the
    router in the cluster. Raises ProvisionError with the router's output.
    """
    endpoint, directory = primary.endpoint, f"{host.directory}/router"
    command = [
        *(str(router), "--bootstrap", f"{endpoint.user}@{endpoint.host}:{endpoint.port}"),
        *("--directory", directory, "--name", NAME, "--report-host", host.address),
        *("--conf-bind-address", host.address),
        # The router neither adds nor ends TLS: the client and the server negotiate it, as without a router.
        *("--client-ssl-mode", "PASSTHROUGH", "--server-ssl-mode", "AS_CLIENT"),
        *(["--user", "root"] if host.root else []),  # without it the router refuses to run as root
    ]
    try:
        known = host.run([str(router), "--help"]).stdout
        left_out = [option for option in LEFT_OUT if option in known]
        unused = {} if LEFT_OUT[-1] in known else {f"{name}.bind_port": host.port(n) for name, n in UNUSED.items()}
        options = {"DEFAULT.logging_folder": "", **unused, **settings}
        command += left_out + [f"--conf-set-option={name}={value}" for name, value in options.items()]
        host.run(command, seconds=BOOTSTRAP_SECONDS, text=f"{endpoint.password}\n")
    except CommandFailed as error:
        raise ProvisionError(f"could not bootstrap a router from {primary.name}: {redact(str(error))}") from None
    return f"{directory}/mysqlrouter.conf"

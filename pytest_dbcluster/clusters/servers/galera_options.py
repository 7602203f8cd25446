"""Galera's own options: many in one variable, and of each node its own; which of them say something of a variant."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.servers.variables import IDENTITY_PREFIX, is_identity

LIST = "wsrep_provider_options"
# Addresses, ports, directories and files, who was sent away, and what is no state but an order.
OWN = frozenset(
    """
    base_dir base_host base_port evs.evict gcache.dir gcache.name gmcast.group gmcast.listen_addr gmcast.mcast_addr
    gmcast.peer_addr ist.recv_addr ist.recv_bind pc.bootstrap socket.ssl_ca socket.ssl_cert socket.ssl_key
    socket.ssl_password_file socket.ssl_reload
    """.split()  # noqa: SIM905  (a list of eighteen quoted words is no easier to read)
)


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The variables on which two servers differ, with both values, and then those of Galera's options.

    Options are left out where one server alone has any: beside one without Galera all of them differ, and say no more
    than that. So is a variable of an option that one server alone has, because versions show other ones.
    """
    (variables, options), (other_variables, other_options) = spread(one), spread(other)
    found = differences(variables, other_variables)
    if not options or not other_options:
        return found
    both = options.keys() & other_options.keys()
    apart = differences(options, other_options)
    return found | {name: pair for name, pair in apart.items() if name in both or not name.startswith(IDENTITY_PREFIX)}


def spread(variables: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The variables by which servers can differ: not those of a node's identity; and Galera's options, by their keys.

    An option that MariaDB 11.8 shows as a variable too is there once, by its key of the list ("gcs.fc_limit"); one
    that the list leaves out is there by its variable.
    """
    listed = parse(variables.get(LIST, ""))
    known = {_variable(key) for key in (*listed, *OWN)} | {LIST}
    separate = {name for name in variables if name.startswith(IDENTITY_PREFIX) and name not in known}
    options = {name: value for name, value in variables.items() if name in separate}
    options |= {key: value for key, value in listed.items() if key not in OWN}
    return {name: value for name, value in variables.items() if not is_identity(name)}, options


def parse(text: str) -> dict[str, str]:
    """The options of a list: ``key = value; key = value; ``."""
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _variable(key: str) -> str:
    return IDENTITY_PREFIX + key.replace(".", "_")

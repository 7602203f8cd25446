"""Compares Galera's provider options, which one variable lists, without those specific to one node."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.servers.path_options import LIST, PROVIDER_OWN, provider_pairs
from pytest_dbcluster.clusters.servers.variables import IDENTITY_PREFIX, is_identity


def server_differences(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the variables, then the provider options, on which two servers differ, as both values by name.

    ``one`` and ``other`` are each server's global variables. If only one server has provider options, this compares no
    provider options, because all would differ. It skips a ``wsrep_provider_...`` variable that only one server has,
    because versions show different ones.
    """
    (variables, options), (other_variables, other_options) = spread(one), spread(other)
    pairs = differences(variables, other_variables)
    if not options or not other_options:
        return pairs
    common = options.keys() & other_options.keys()
    for name, pair in differences(options, other_options).items():
        if name in common or not name.startswith(IDENTITY_PREFIX):
            pairs[name] = pair
    return pairs


def spread(variables: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split a server's variables into (variables, provider options), without those specific to one node.

    A provider option that MariaDB 11.8 also shows as a variable appears once, under its key in the list
    (``gcs.fc_limit``). An option that is not in the list appears under its variable's name.
    """
    listed = provider_pairs(variables.get(LIST, ""))
    known = {variable_of(key) for key in (*listed, *PROVIDER_OWN)} | {LIST}
    separate = {name for name in variables if name.startswith(IDENTITY_PREFIX) and name not in known}
    options = {name: value for name, value in variables.items() if name in separate}
    options |= {key: value for key, value in listed.items() if key not in PROVIDER_OWN}
    return {name: value for name, value in variables.items() if not is_identity(name)}, options


def variable_of(key: str) -> str:
    """The variable that MariaDB 11.8 shows for a provider option, such as ``gcs.fc_limit``."""
    return IDENTITY_PREFIX + key.replace(".", "_")

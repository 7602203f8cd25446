"""The maximum cost of the instances of a run, printed before it begins.

A cap that is too low ends the run. The clusters are those among the constants of a test's module and its parameters
(``grouping.specs``). A cluster that a test makes in its body is unknown here. This calls no API of AWS. It assumes
usual values for what only AWS knows: the root volume of the image, and a public address for each instance, unless a
jump host leads to them. The line before a launch has the figures of AWS.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin import grouping

if TYPE_CHECKING:
    from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost
    from pytest_dbcluster.plugin.settings import Settings

PROVISIONER = "ec2"


def refuse(settings: Settings, running: Sequence[Any]) -> None:
    """Raise ConfigError if --db-max-cost does not allow even the smallest possible launch, or a price is unknown.

    That launch has the nodes of the smallest cluster of the tests, without what only AWS knows. settings: those of the
    run. running: the measuring tests that no mark skips.
    """
    if settings.provisioner != PROVISIONER or not (sizes := _sizes(running)):
        return
    from pytest_dbcluster.hosts.provisioners.ec2.money.cost import MICRO

    cost, cap = _cost(settings, min(sizes), least=True), settings.elsewhere["settings"].max_cost
    if cap is None or cost.most > round(cap * MICRO):
        raise ConfigError(_cost(settings, max(sizes)).refusal(cap))


def lines(settings: Settings, running: Sequence[Any]) -> list[str]:
    """The line with the maximum cost of the instances of the run; none for another provisioner.

    Arguments: as in ``refuse``. If the maximum is unknown, the line says why.
    """
    if settings.provisioner != PROVISIONER or not running:
        return []
    if not (sizes := _sizes(running)):
        return [
            "ec2: the cost is unknown, because the modules of the tests have no ClusterSpec among their constants or "
            "parameters"
        ]
    try:
        line = _cost(settings, max(sizes)).line
    except ConfigError as error:
        return [f"ec2: {error}"]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return [f"{line}{f'; for each of {workers} workers' if workers > 1 else ''}"]


def _sizes(running: Sequence[Any]) -> set[int]:
    """The numbers of nodes of the clusters of these tests; empty if no spec is known before they run."""
    return {spec.nodes for item in running for spec in grouping.specs(item)}


def _cost(settings: Settings, servers: int, *, least: bool = False) -> Cost:
    """The cost of so many servers and a load host. least: without what only AWS knows. Raises ConfigError."""
    from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
    from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost, InstanceGroup
    from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
    from pytest_dbcluster.hosts.provisioners.ec2.money.spending import ROLES, root
    from pytest_dbcluster.hosts.provisioners.ec2.plan import DEFAULT_TYPE, LOAD, SERVER, USUAL_GIB
    from pytest_dbcluster.hosts.provisioners.ec2.settings import ZONE

    asked = settings.elsewhere["settings"]
    found = [zone["region"] for name in asked.zones if (zone := ZONE.fullmatch(name))]
    region = found[0] if found else Account().region
    type_, public = asked.type or DEFAULT_TYPE, not (least or asked.jump)
    volumes = () if least else (root(USUAL_GIB),)
    groups = [
        InstanceGroup(ROLES[SERVER], type_, servers, public, (*volumes, asked.volume)),
        InstanceGroup(ROLES[LOAD], asked.load_type or type_, 1, public, volumes),
    ]
    prices = Prices(asked.prices)
    return Cost.of(groups, region=region, prices=prices, ttl=asked.ttl, zones=asked.zones, spot=asked.spot)

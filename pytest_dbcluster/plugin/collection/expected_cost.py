"""The most that the instances of a run can cost, printed before it begins; a cap that is too low ends it there.

Nothing is asked of AWS for this. What only AWS knows is taken as usual: the root volume of the image, and a public
address for each instance, unless a jump host leads to them. The line before a launch has the figures of AWS.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.collection.code_of_test import code_of
from pytest_dbcluster.spec import ClusterSpec

if TYPE_CHECKING:
    from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost
    from pytest_dbcluster.plugin.settings import Settings

PROVISIONER = "ec2"


def refuse(settings: Settings, running: Sequence[Any]) -> None:
    """Raise ConfigError where --db-max-cost does not allow even what is sure to be paid for, or a price is unknown.

    settings: of the run. running: the measuring tests that will not be skipped by a mark.
    """
    if settings.provisioner != PROVISIONER or not (servers := _servers(running)):
        return
    from pytest_dbcluster.hosts.provisioners.ec2.money.cost import MICRO

    cost, cap = _cost(settings, servers, least=True), settings.elsewhere["settings"].max_cost
    if cap is None or cost.most > round(cap * MICRO):
        raise ConfigError(_cost(settings, servers).refusal(cap))


def lines(settings: Settings, running: Sequence[Any]) -> list[str]:
    """The line with the most that the instances of the run can cost; none for another provisioner.

    Arguments: as of ``refuse``. Where the most is not known, the line says why.
    """
    if settings.provisioner != PROVISIONER or not running:
        return []
    if not (servers := _servers(running)):
        return [
            "ec2: the code of the tests does not show how many nodes their clusters have, so neither what they cost"
        ]
    try:
        line = _cost(settings, servers).line
    except ConfigError as error:
        return [f"ec2: {error}"]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return [f"{line}{f'; this for each of {workers} workers' if workers > 1 else ''}"]


def _servers(running: Sequence[Any]) -> int:
    """The nodes of the largest cluster that the code of the tests shows; 0 for none."""
    specs = [spec for item in running for call in code_of(item).calls for spec in call.on]
    return max((spec.nodes for spec in specs if isinstance(spec, ClusterSpec)), default=0)


def _cost(settings: Settings, servers: int, *, least: bool = False) -> Cost:
    """The cost of so many servers and a load host. least: without what only AWS knows. Raises ConfigError."""
    from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
    from pytest_dbcluster.hosts.provisioners.ec2.launch import DEFAULT_TYPE, LOAD, SERVER, USUAL_GIB
    from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost, Group
    from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
    from pytest_dbcluster.hosts.provisioners.ec2.money.spending import ROLES, root
    from pytest_dbcluster.hosts.provisioners.ec2.settings import ZONE

    asked = settings.elsewhere["settings"]
    found = [zone["region"] for name in asked.zones if (zone := ZONE.fullmatch(name))]
    region = found[0] if found else Account().region
    type_, public = asked.type or DEFAULT_TYPE, not (least or asked.jump)
    volumes = () if least else (root(USUAL_GIB),)
    groups = [
        Group(ROLES[SERVER], type_, servers, public, (*volumes, asked.volume)),
        Group(ROLES[LOAD], asked.load_type or type_, 1, public, volumes),
    ]
    prices = Prices(asked.prices)
    return Cost.of(groups, region=region, prices=prices, ttl=asked.ttl, zones=asked.zones, spot=asked.spot)

"""What ``Rolling`` does to each node: ``Restart``, ``SetOptions`` and ``Upgrade``."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.events.event import Stage
    from pytest_dbcluster.clusters.servers.node import Node


class RollingStep(abc.ABC):
    """A change of one node while its server does not run: a frozen dataclass with a short text."""

    comes_back: ClassVar[bool] = True
    """Whether a cluster can have the options and release from before again."""

    @abc.abstractmethod
    def __str__(self) -> str:
        """The text of the step, for results."""

    def stages(self, spec: ClusterSpec) -> Sequence[ClusterSpec]:
        """Return the specs that the cluster has in turn, the last node first; empty if nothing changes."""
        return ()

    def check_stages(self, start: Stage, end: Stage) -> None:  # noqa: B027 (most stages are checked by their specs)
        """Raise ConfigError for a change of the servers that nobody can make."""

    def finish(self, node: Node) -> None:  # noqa: B027 (most steps end with the start)
        """Do what follows the start of the node's server. Raises ProvisionError."""

    def unproven(self, node: Node) -> str:
        """Return why a running node does not show the change; empty if it does."""
        return ""


@dataclasses.dataclass(frozen=True)
class Restart(RollingStep):
    """A clean shutdown and a start."""

    def __str__(self) -> str:
        return "restart"


@dataclasses.dataclass(frozen=True, init=False)
class SetOptions(RollingStep):
    """A restart with other server options: ``SetOptions(innodb_io_capacity=2000)``."""

    options: tuple[tuple[str, str], ...]
    """The options, as ``ClusterSpec.with_options`` accepts them; they override those of the spec."""

    def __init__(self, options: Mapping[str, object] | Iterable[tuple[str, object]] = (), **more: object) -> None:
        changed = ClusterSpec("standalone").with_options(dict(options), **more)
        object.__setattr__(self, "options", changed.options)
        if not changed.options:
            raise ConfigError("SetOptions() has no option, such as SetOptions(innodb_io_capacity=2000)")

    def __str__(self) -> str:
        return f"set {', '.join(f'{name}={value}' for name, value in self.options)}"

    def stages(self, spec: ClusterSpec) -> Sequence[ClusterSpec]:
        """Return the spec with the options."""
        return [spec.with_options(dict(self.options)).named(spec.name)]

    def unproven(self, node: Node) -> str:
        """Return the options that the running server has changed."""
        from pytest_dbcluster.clusters.servers import options as opts

        return "; ".join(opts.adjustments(dict(self.options), node.variables(), node.name))


@dataclasses.dataclass(frozen=True)
class Upgrade(RollingStep):
    """A restart with a newer release of the same product, and the vendor's upgrade program."""

    release: str
    """The release, such as ``mariadb:11.8``."""

    comes_back = False

    def __str__(self) -> str:
        return f"upgrade to {self.release}"

    def stages(self, spec: ClusterSpec) -> Sequence[ClusterSpec]:
        """Return the specs of a cluster whose last, last two, ... and all nodes have the release."""
        new, old = ReleaseName.parse(self.release), spec.releases
        mixes = [(*old[:first], *(new,) * (spec.nodes - first)) for first in reversed(range(spec.nodes))]
        return [dataclasses.replace(spec, release=mix) for mix in mixes]

    def check_stages(self, start: Stage, end: Stage) -> None:
        """Raise ConfigError for a release that is not newer than that of each node."""
        from pytest_dbcluster.clusters.dialects.lookup import numbers

        for number, (before, after) in enumerate(zip(start.releases, end.releases, strict=True), 1):
            if after.product != before.product or numbers(after.version) <= numbers(before.version):
                raise ConfigError(
                    f"Upgrade({self.release!r}): node{number} has {before.product} {before.version}, and "
                    f"{after.product} {after.version} is not newer"
                )

    def finish(self, node: Node) -> None:
        """Upgrade the system tables of the node with the vendor's program; MySQL does it at the start."""
        if node.dialect.upgrade and node.release.path_of(node.dialect.upgrade[0]):
            from pytest_dbcluster.clusters.servers import data_template

            data_template.run_upgrade(node)

    def unproven(self, node: Node) -> str:
        """Return the version of the running server, if it is not that of the release."""
        version = str(node.query("SELECT VERSION()")[0][0])
        wanted = node.release.version
        return "" if version.startswith(wanted) else f"{node.name} runs {version}, not {wanted}"

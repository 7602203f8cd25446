"""``DriverWorkload``: the base class of the workloads that the sysbench driver runs."""

from __future__ import annotations

import abc
import copy
import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds import open_loop, round_length
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import arguments
from pytest_dbcluster.workloads.workload import Setting, Workload

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.connection import Endpoint
    from pytest_dbcluster.workloads.sysbench_driver import Call

OPTIONS = ("isolation", "pause", "reconnect", "idle")  # of terminal.lua
ENDPOINTS = (None, "all", "reader", "writer")
ISOLATIONS = (None, "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
NONE: Mapping[str, Sequence[str | None]] = MappingProxyType({})


class DriverWorkload(Workload):
    """Threads that run transactions. Subclasses are dataclasses, which repeat these fields with their defaults."""

    threads: int
    """Number of connections, over all endpoints."""

    seconds: float | None
    """Length of a round. None lets each claim choose .3 to 3 s from its warm-up.

    Outside of a claim it is 1.1 s, or 2 s with ``rate`` or ``pause``.
    """

    rate: float | str | None
    """Transactions per second of an open loop, or a share such as ``"70 %"`` of the slowest variant's capacity. None is
    a closed loop.
    """

    to: str | None
    """``writer``, ``reader`` or ``all``. None is the proxy if the cluster has one, otherwise every node that can run
    the script.
    """

    isolation: str | None
    """Isolation level of the transactions; None is the server's default."""

    seed: int
    """Seed of the inputs; each block has other inputs."""

    reconnect: bool = False
    """Whether each transaction has a new connection, which is made in the transaction's time."""

    idle: int = 0
    """Number of connections beside the load that stay idle in each round."""

    pause: float | None = None
    """Mean seconds that each connection waits before a transaction of a closed loop, exponentially distributed."""

    tls: bool = False
    """Whether the connections use TLS, which the servers must offer."""

    metric: ClassVar[str] = "goodput"  # attempts that ended in a conflict do not count as work
    divides: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_fields()

    @property
    @abc.abstractmethod
    def database(self) -> str:
        """The database of the tables."""

    @abc.abstractmethod
    def _check_fields(self) -> None:
        """Raise ConfigError for a wrong value of a field."""

    def _check(
        self,
        tool: str,
        least: Mapping[str, int],
        truths: Sequence[str],
        choices: Mapping[str, Sequence[str | None]] = NONE,
    ) -> None:
        """Check the fields that all have, and those given here as for ``arguments.check_fields``."""
        arguments.check_fields(
            tool,
            self,
            choices={"to": ENDPOINTS, "isolation": ISOLATIONS, **choices},
            least={"threads": 1, "seed": 0, "idle": 0, **least},
            truths=("reconnect", "tls", *truths),
            seconds=("seconds", "pause"),
        )
        if self.rate is None:
            return
        open_loop.share_of(self.rate)
        if self.pause is not None:
            raise ConfigError(
                f"{tool} pause={self.pause!r} and rate={self.rate!r}: both decide when transactions start: use one"
            )

    def _name(self, begin: str, to: str | None, end: str = "") -> str:
        """The workload's name. begin: what it runs, on how many threads. end: other fields."""
        parts = [f" at {open_loop.text_of(self.rate)}"] if self.rate else []
        parts += [f" to {to}"] if to else []
        parts += [end]
        parts += [f" pausing {self.pause:g} s"] if self.pause else []
        parts += [" reconnecting"] if self.reconnect else []
        parts += [f" beside {self.idle} idle"] if self.idle else []
        return begin + "".join(parts) + (" with TLS" if self.tls else "")

    @property
    def round_seconds(self) -> float:
        """The seconds in which a round starts transactions; those of a warm-up until a claim has chosen others.

        Terminals that start at a rate, or that pause, have fewer transactions in a second: their warm-up is longer.
        """
        if self.seconds is not None:
            return self.seconds
        return round_length.WARM_UP if self.rate is None and self.pause is None else round_length.USUAL

    @property
    def clients(self) -> int:
        """One connection for each thread, and the idle ones."""
        return self.threads + self.idle

    def with_seconds(self, seconds: float | None) -> Self:
        """The same workload with rounds of this length in seconds; None lets the claim choose it."""
        return self._with("seconds", seconds)

    def at_rate(self, rate: float | None) -> Self:
        """The same workload at this rate in transactions per second; None is a closed loop."""
        return self._with("rate", rate)

    def _with(self, name: str, value: object) -> Self:
        """A copy with another value. Files are not read again, so a change of them shows in ``run``."""
        made = copy.copy(self)
        made._fix({name: value})
        made._check_fields()
        return made

    def _fix(self, values: Mapping[str, object]) -> None:
        """Set fields, which are frozen. Only a new workload may do this."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _endpoints(self, setting: Setting) -> list[Endpoint]:
        """The endpoints of the threads."""
        from pytest_dbcluster.workloads import sysbench_driver

        return sysbench_driver.endpoints(setting.cluster, self.to, writes=self.writes)

    def _require_tools(self, setting: Setting) -> None:
        """Raise Unsupported for an old sysbench, and with ``tls`` if a server does not offer it.

        Raises ConfigError if the workload writes and an endpoint accepts no writes.
        """
        from pytest_dbcluster.workloads import sysbench_driver, tls_files

        if self.writes:
            setting.cluster.require_writers(self._endpoints(setting), str(self))
        sysbench_driver.sysbench(setting)
        if self.tls:
            tls_files.read(setting.cluster, self._endpoints(setting))

    def run(self, setting: Setting) -> RunResult:
        """Run one round. Raises WorkloadError, NodeDied, and ConfigError for too many threads or an unknown rate."""
        return self.observe(setting)[0]

    @abc.abstractmethod
    def observe(self, setting: Setting) -> tuple[RunResult, list[dict[str, Any]]]:
        """Run one round, and return its result and the report of each thread. Raises what ``run`` raises."""

    def _drive(self, call: Call, setting: Setting, **more: Any) -> tuple[RunResult, list[dict[str, Any]]]:
        """Run one round of a call. more: as for ``sysbench_driver.run``."""
        from pytest_dbcluster.workloads import sysbench_driver

        if isinstance(self.rate, str):
            raise ConfigError(f"{self}: measure the capacity of the variants first; only a claim does that")
        own = {name: value for name in OPTIONS if (value := getattr(self, name))}
        options = {**call.options, **call.own(own)}
        call = dataclasses.replace(call, options=options, idle=self.idle, tls=self.tls)
        return sysbench_driver.run(call, setting, seconds=self.round_seconds, rate=self.rate, seed=self.seed, **more)

    def clean(self, setting: Setting) -> None:
        """Drop the database."""
        setting.cluster.writers[0].query(f"DROP DATABASE IF EXISTS `{self.database}`", wait.SLOW_SECONDS)

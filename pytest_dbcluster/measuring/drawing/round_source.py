"""RoundSource: the interface that a measurement draws its rounds from: real clusters, or made-up numbers in a test."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType

from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.measuring.evidence import Evidence, ResolvedSpec
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.rounds.round_length import RoundLength


class RoundSource(abc.ABC):
    """Runs the rounds of one workload on the variants of one measurement. Variants are numbered from 0."""

    names: Sequence[str]
    """The short name of each variant."""

    load: str
    """The name of the workload."""

    data: Mapping[str, str] = MappingProxyType({})
    """By name of a variant, the size of its workload's tables, as in Evidence."""

    files: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """By name of a variant, the SHA-256 of each file of its workload; without workloads that have no files."""

    content: str = ""
    """The digest of the files of all workloads; empty without files."""

    metric: str
    """The default metric of claims."""

    arrival_rate: ArrivalRate | None
    """The rate of an open loop; None for a closed loop."""

    parts: Sequence[str] = ()
    """The types of transactions and the statements to which a metric can be limited, as in ``Workload.parts``."""

    round_seconds: float | None = None
    """The seconds of a round, if the test gives them; else None, also for a fixed amount of work."""

    free_length: bool = False
    """Whether the length of the rounds is chosen: ``set_length`` is called once, after the warm-up."""

    warm: bool = False
    """Whether the source warms its clusters before its first round, so that no warm-up is needed."""

    is_used: bool = False
    """Whether one block of warm-up suffices: other rounds have used its clusters; known after the first block."""

    usual_seconds: float = 0.0
    """The expected seconds of a repetition of an event, before the first one has run; 0 for rounds."""

    resolved: Sequence[ResolvedSpec] = ()
    """Each variant as it runs."""

    instances: int = 1
    """The instances of each variant, if it has its own cluster."""

    @abc.abstractmethod
    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Run one round of a variant: switch, reset, settle, run. A round with a ``void`` reason does not count.

        All rounds of a block have the same inputs. block: its 0-based number, negative in a warm-up; modulo
        ``instances_in_turn`` it is the instance of the variant. position: the 0-based position in the block.
        """

    @abc.abstractmethod
    def check(self) -> None:
        """Raise SeriesVoid when the clusters or their tables are not as they should be after the rounds."""

    def continues(self, other: RoundSource) -> bool:
        """Whether its rounds run on the clusters and the data set of the other one's rounds, as those left them."""
        return False

    def instances_in_turn(self) -> int:
        """The number of instances of each variant, which the blocks use in turn."""
        return 1

    def cluster_difference(self, *numbers: int, metric: str) -> ClusterDifference | None:
        """How far equal clusters can differ in a metric; None if these variants share one cluster.

        metric: as claims name it.
        """
        return None

    def learn(self, rounds: Sequence[Sequence[Round]]) -> None:  # noqa: B027 (numbers have no clusters)
        """Learn from these rounds, by variant, how far the instances of a variant differ: equal clusters do as much."""

    def prepare_race(self, instances: int | None) -> None:  # noqa: B027 (numbers have no clusters)
        """Prepare for a race, before anything starts. instances: of each variant; None for the default of a race.

        Raises ConfigError if two variants are the same.
        """

    def leave(self, numbers: Collection[int], lines: Sequence[str]) -> None:  # noqa: B027 (numbers have no clusters)
        """These variants run no more: check their clusters, and end those that no other variant uses.

        lines: say who leaves, and are shown. Raises SeriesVoid as ``check`` does.
        """

    def exclusive(self) -> AbstractContextManager[None]:
        """A context for a few rounds, in which nothing else measures or builds on this machine."""
        return contextlib.nullcontext()

    def set_length(self, length: RoundLength) -> None:  # noqa: B027 (rounds of a fixed amount of work have none)
        """Set the length of all later rounds, of all variants."""

    def set_repeat(self, times: int) -> None:  # noqa: B027 (rounds that last for a time run no fixed work)
        """Let all later rounds, of all variants, run their fixed amount of work ``times`` times."""

    def lower_rate(self, why: str, done: float) -> bool:
        """Lower the arrival rate of all variants, if that is allowed; return whether it was.

        It is allowed once, and only for a share of the capacity: a rate in operations a second is what the test asks
        for. why: the rate is too high. done: the operations a second that the slowest variant did at that rate.
        """
        return False

    def ways_back(self, variant: int) -> Sequence[str]:
        """The ways in which a node of a variant can get what it missed, such as ``IST``; empty if unknown."""
        return ()

    def permit(self, metric: str) -> None:  # noqa: B027 (by default every metric is permitted)
        """Raise ConfigError for a metric or counter that the workload does not have on these variants."""

    @property
    def rounds_of_value(self) -> int:
        """The number of rounds that count as one value; usually one."""
        return 1

    def choose_rates(self) -> None:  # noqa: B027 (by default a workload keeps its rate)
        """Choose the rates of all rounds before the first one, if they take rounds; then ``round_seconds`` is known.

        Raises ConfigError if no rate will do.
        """

    def blind_spot(self, *numbers: int, by_size: bool = False) -> str:
        """Why no claim about these variants can be trusted on this machine; empty when it can be.

        by_size: as in ``claims.claim.Kind.about_size``.
        """
        return ""

    def notice(self) -> str:
        """Why the hosts will soon be gone; empty while they stay. It is called after every block."""
        return ""

    def end(self) -> None:  # noqa: B027 (numbers need no end)
        """End what runs between rounds, because no round follows now."""

    def timeline(self, rounds: Sequence[Round]) -> str:
        """The machine in every second of these rounds, as CSV; empty for rounds that were not sampled."""
        return ""

    def evidence(self, question: Question) -> Evidence:
        """What is known about the clusters of a question. It is called once, after the last round of its answer."""
        return Evidence()

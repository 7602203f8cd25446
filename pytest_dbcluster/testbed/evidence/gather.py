"""``Gatherer``: the evidence of a question, read from the running clusters of one measurement."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.galera_options import server_differences
from pytest_dbcluster.hosts.network import measured_back
from pytest_dbcluster.measuring.evidence import Evidence, Step
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.testbed.comparability import differences_line, hosts_line, shapes_line
from pytest_dbcluster.testbed.evidence import durability, specs
from pytest_dbcluster.testbed.evidence.durability import Durability, LabelledVariant
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload


class Gatherer:
    """Knows the variants of one measurement, and queries their servers once.

    client: the release of the load generator. switched: switches the cluster of a variant (0-based) and returns it.
    ``network`` measures the delays of the clusters before the first round and after the last. ``resolved`` has a value
    for each variant.
    """

    def __init__(
        self,
        names: Sequence[str],
        variants: Sequence[Variant],
        pool: Pool,
        client: Release,
        switched: Callable[[int], Cluster],
    ) -> None:
        self.network = measured_back.MeasuredBack()
        self.resolved = [specs.resolved_spec(variant, pool.resolution.parity) for variant in variants]
        self._names = names
        self._variants = variants
        self._pool = pool
        self._client = client
        self._switched = switched
        self._variables: dict[int, dict[str, str]] = {}
        self._labels: dict[int, Durability] = {}
        self._bytes = 0  # of the data, if known

    def compare_labels(self, numbers: Iterable[int], *, allowed: bool) -> None:
        """Read the durability labels of these variants, and compare all labels so far.

        allowed: whether they may differ. Raises ConfigError as ``durability.compare``.
        """
        with self._pool.turns.building():
            for number in numbers:
                self._label(number)
        if not allowed:
            known = sorted(self._labels.items())
            durability.compare([LabelledVariant(self._names[n], self._variants[n], label) for n, label in known])

    def evidence(self, question: Question, workloads: Sequence[Workload], used: Cluster | None, mode: str) -> Evidence:
        """The evidence of a question.

        workloads: those of all variants. used: the cluster of the last round; None before it. mode: as in Evidence.
        """
        numbers, names, variants = question.variants, self._names, self._variants
        self._read_size(numbers, used)  # first, because reading variables may end this cluster and start another one
        labels = {names[number]: str(self._label(number)) for number in numbers}
        steps = {(names[one], names[other]): (one, other) for one, other in itertools.pairwise(numbers)}
        differ = {
            step: server_differences(*map(self._effective, two[::-1]))
            | comparability.proxy_differences(*(variants[number] for number in two[::-1]))
            for step, two in steps.items()
        }
        fits = {
            (candidate, baseline): comparability.data_fits_line(variables, (baseline, candidate), self._bytes)
            for (candidate, baseline), variables in differ.items()
        }
        same_workload = len(set(workloads)) == 1
        data = comparability.data_texts([names[n] for n in numbers], [workloads[n] for n in numbers])
        by_name = dict(zip(names, variants, strict=True))
        return Evidence(
            durability=labels,
            differences=differ,
            data_fits=fits,
            data=data,
            files=comparability.files([names[n] for n in numbers], [workloads[n] for n in numbers]),
            delays={names[n]: tuple(delays) for n in numbers if (delays := self.network.of(names[n]))},
            specs={names[number]: self.resolved[number] for number in numbers},
            environment=self._pool.environment,
            rtts=comparability.rtts(by_name) if same_workload else {},
            mode=mode,
            others_before=self._pool.others_before,
            notes=tuple(self._notes(labels, differ, fits, workloads)),
        )

    def _notes(
        self,
        labels: Mapping[str, str],
        differ: Mapping[Step, Mapping[str, tuple[str, str]]],
        fits: Mapping[Step, str],
        workloads: Sequence[Workload],
    ) -> list[str]:
        """Lines below a verdict: durability labels, shapes, host limits, and variables that differ between neighbours.

        If variants have several releases, a line names the release of the client.
        """
        by_name = dict(zip(self._names, self._variants, strict=True))
        asked = {name: by_name[name].spec for name in labels}
        needs = {name: spec.needs for name, spec in asked.items()}
        networks = (measured_back.line(name, by_name[name].network, self.network.of(name)) for name in labels)
        label = "; ".join(f"{name} {text}" for name, text in labels.items())
        lines = [f"durability: {label}", *shapes_line(asked), *hosts_line(needs), *filter(None, networks)]
        for (candidate, baseline), variables in differ.items():
            lines += [differences_line(baseline, candidate, variables), *filter(None, [fits[candidate, baseline]])]
        if len({(variant.release_name, variant.version) for variant in self._variants}) > 1:
            lines.append(f"client of all variants: {self._client.name} {self._client.version}")
        lines += comparability.undivided_lines(workloads, self._pool.clients(self._client))
        return [*lines, *self._pool.provisioner.remarks]

    def _label(self, number: int) -> Durability:
        """What a commit of a variant guarantees when it returns."""
        if number not in self._labels:
            variant, variables = self._variants[number], self._effective(number)
            self._labels[number] = Durability.of(variant.topology, variables, variant.spec.nodes)
        return self._labels[number]

    def _effective(self, number: int) -> dict[str, str]:
        """All global variables of a variant's first writer. They are read once; each switch verifies them."""
        if number not in self._variables:
            with self._pool.turns.building():
                cluster = self._switched(number)
                self._variables[number] = {**cluster.writers[0].variables(), **cluster.topology.facts()}
        return self._variables[number]

    def _read_size(self, numbers: Iterable[int], used: Cluster | None) -> None:
        """Read the size of the data for ``Evidence.data_fits``, if the buffer pools of these variants may differ."""
        chosen = [self._variants[number] for number in numbers]
        pools = {(one.options.get(comparability.BUFFER_POOL), one.release_name) for one in chosen}
        if used is not None and len(pools) > 1 and used.writers[0].running:
            node = used.writers[0]
            with self._pool.turns.building():
                self._bytes = int(node.query(node.dialect.table_bytes, wait.SLOW_SECONDS)[0][0])

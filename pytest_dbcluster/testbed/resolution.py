"""``Resolution``: looks up and checks a cluster spec once, and returns it as a ``Variant``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from pytest_dbcluster import formatting
from pytest_dbcluster.clusters import topology as topologies
from pytest_dbcluster.clusters.dialects.lookup import dialect, numbers
from pytest_dbcluster.clusters.dialects.release_mixes import NodeVersion
from pytest_dbcluster.clusters.proxy import Proxy, proxy_class
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers import parity
from pytest_dbcluster.clusters.servers.cnf_file import CnfFile
from pytest_dbcluster.clusters.servers.cnf_judge import judge_file
from pytest_dbcluster.clusters.servers.data_template import Template
from pytest_dbcluster.clusters.servers.variables import file_sizes, memory_sizes
from pytest_dbcluster.clusters.startup import has_template, ready_template
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import PARITIES, ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.comparability import check_client
from pytest_dbcluster.testbed.variants import Building, References, Variant, split
from pytest_dbcluster.workloads.workload import Workload

LARGE_FILES = 2**30  # if a server's first files have so many bytes, we check the free space


class ReleaseLacks(Unsupported):
    """A release lacks something that the topology needs, such as a plugin or a library."""


class Resolution:
    """Resolves the specs of a run to their release, topology, proxy class, dialect and server options.

    - below: the file of ``--db-cnf``; None for none.
    - fragments: the directory of my.cnf fragments.
    - root: the directory that stands for the ``/`` of the host that the my.cnf files came from.
    - parity_profile: the parity profile for specs that name none.

    ``overridden`` collects one line for each overridden or unused option, and for each choice of a
    topology or proxy. ``building``
    locks the machine for downloads and starts; all other answers need no lock.
    """

    def __init__(
        self,
        provisioner: Provisioner,
        *,
        fragments: Path,
        below: CnfFile | None,
        progress: Report,
        root: Path | None = None,
        parity_profile: str = PARITIES[0],
    ) -> None:
        self.provisioner = provisioner
        self.progress = progress
        self.overridden: list[str] = []
        self._fragments = fragments
        self._below = below or None
        self._root = root
        self.parity = parity_profile
        self._releases: dict[ReleaseName, Release] = {}
        self.building: Building = contextlib.nullcontext
        self._references = References(provisioner, progress, self._hold_machine)

    def _hold_machine(self) -> AbstractContextManager[None]:
        return self.building()  # read late: the pool replaces ``building`` after the references exist

    def release(self, name: ReleaseName) -> Release:
        """The programs of a release, found or downloaded once a run. Raises what ``releases.find.find`` raises."""
        if name not in self._releases:
            with contextlib.nullcontext() if self.provisioner.at_hand(name) else self.building():
                self._releases[name] = self.provisioner.supply(name, self.progress)
        return self._releases[name]

    def programs(self, spec: ClusterSpec) -> Release:
        """The release of a spec, which can run its topology and proxy. Raises Unsupported if it cannot, else as above.

        It says nothing about the options of the spec.
        """
        return self._programs(spec, *look_up(spec, self.provisioner))[0]

    def _programs(
        self, spec: ClusterSpec, topology: Topology, proxy: type[Proxy] | None
    ) -> tuple[Release, tuple[Release, ...]]:
        """The oldest release of a spec, and those of all nodes if they differ."""
        if spec.release is None:
            raise ConfigError(f"neither cluster {spec} nor the run names a release")
        releases = tuple(map(self.release, spec.releases))
        for release in {one.key: one for one in releases}.values():
            check_release(release, topology, proxy)
        if len({release.key for release in releases}) == 1:
            return releases[0], ()
        topologies.refuse_mix(spec, topology, [_node_version(one) for one in releases])
        return min(releases, key=lambda release: numbers(release.version)), releases

    def resolve(self, spec: ClusterSpec, *, switched: bool = True, client_of: Iterable[Workload] = ()) -> Variant:
        """The variant of a spec. The server's list of options decides which options are valid.

        switched: whether the cluster may serve other variants too. Then this splits options into static ones, set at
        the start, and dynamic ones, set by a switch. A reference server may start to find out which are which.
        Otherwise all options are static and no server starts. client_of: the workloads whose load generator comes from
        the release of this spec. Raises ConfigError for unknown or refused names and values, and Unsupported if this
        machine or release cannot run the cluster.
        """
        topology, proxy = look_up(spec, self.provisioner)
        opts.check_written(spec, fragments=self._fragments, root=self._root)
        settings_of(topology, dict(spec.options), spec.topology)
        release, releases = self._programs(spec, topology, proxy)
        check_client(client_of, release)
        options, common, template, settings = self._options(spec, release, topology)
        for other in {one.key: one for one in releases}.values():
            options |= self._options(spec, other, topology)[0]
        remarks = [topology.remark(release, options), proxy.remark(topology, release) if proxy else ""]
        if releases and (remark := topology.mix_remark([_node_version(one) for one in releases])):
            remarks.append(f"{spec}: {remark}")
        self._note(*filter(None, remarks))
        static = Variant(
            spec,
            release,
            topology,
            proxy,
            dialect(release.product, release.version),
            static=tuple(sorted(options.items())),
            dynamic=(),
            ends=asked.ends if (asked := spec.needs.network) else None,
            settings=tuple(sorted(settings.items())),
            releases=releases,
        )
        if not switched or releases:  # no reference says how the variables of several releases change together
            return static
        return self._references.make_switchable(split(static, template.variables, common), template.variables)

    def _options(
        self, spec: ClusterSpec, release: Release, topology: Topology
    ) -> tuple[dict[str, str], dict[str, str], Template, dict[str, str]]:
        """The options of a spec, those that every cluster of the run has, the template, and the topology's options."""
        memory = self.provisioner.node_memory(spec, self.provisioner.memory().total)
        parity_options = parity.options(spec.parity or self.parity, release, spec.topology)
        given = opts.resolve(
            spec,
            lambda cnf: judge_file(cnf, release, self.provisioner),
            fragments=self._fragments,
            below=self._below,
            memory=memory,
            root=self._root,
        )
        settings = settings_of(topology, given.options, spec.topology)
        own = {name: value for name, value in given.options.items() if name not in settings}
        wanted = {**parity_options, **own}
        self._require_room(spec, wanted)  # before the template, which has files of these sizes
        template = self._template(release, wanted)
        options, absent = opts.fit(wanted, template, release, given.judged)
        self._note(*given.lines, *absent)
        common = {**parity_options, **given.common}
        return options, {name: value for name, value in common.items() if name in options}, template, settings

    def _require_room(self, spec: ClusterSpec, options: Mapping[str, str]) -> None:
        """Raise ConfigError if the nodes' caches exceed the memory, or their first files the disk."""
        memory = self.provisioner.most_memory(spec, self.provisioner.memory().total)
        if (wanted := memory_sizes(options)) and sum(wanted.values()) > memory:
            raise too_large(spec, wanted, memory, "memory", "a size may be a share, such as 80 %")
        if sum((files := file_sizes(options)).values()) < LARGE_FILES:
            return
        host = self.provisioner.workshop(spec)
        try:
            free = spec.needs.disk or host.free_bytes() // (1 if host.machine else spec.nodes)
        finally:
            self.provisioner.give_back([host])
        if sum(files.values()) > free:
            raise too_large(spec, files, free, "free disk", "DBCLUSTER_DATA_DIR may name another disk")

    def _note(self, *lines: str) -> None:
        self.overridden += [line for line in lines if line not in self.overridden]

    def changes(self, variant: Variant) -> dict[str, str]:
        """The variables, with their values, that a switch to this variant sets on a cluster of its static options."""
        template = self._template(variant.release, variant.options)
        return self._references.changes(variant, template.variables) or {}

    def defaults(self, variant: Variant) -> dict[str, str]:
        """The variables of a variant's servers, without those that the topology sets. Starts no cluster."""
        variables = self._template(variant.release, variant.options).variables
        return {name: variable.value for name, variable in variables.items()} | variant.asked

    def _template(self, release: Release, options: Mapping[str, str]) -> Template:
        with contextlib.nullcontext() if has_template(release, options) else self.building():
            return ready_template(release, self.provisioner, options, self.progress)


def too_large(spec: ClusterSpec, sizes: Mapping[str, float], room: int, what: str, way_out: str) -> ConfigError:
    """The error about options that exceed a node's room. room: bytes. what: ``memory`` or ``free disk``."""
    asked = " and ".join(f"{name}={formatting.gibibytes(size)}" for name, size in sizes.items())
    return ConfigError(
        f"{spec}: {asked} exceeds the {what} of a node, {formatting.gibibytes(room)} (its share with "
        f"{formatting.quantity(spec.nodes, 'node')}); {way_out}. Give all variants a smaller value: with_options(...) "
        f"in a test, --option {next(iter(sizes))}=... of dbcluster compare"
    )


def look_up(spec: ClusterSpec, provisioner: Provisioner) -> tuple[Topology, type[Proxy] | None]:
    """The topology and the proxy class of a spec. Downloads and starts nothing.

    Raises ConfigError for unknown names, for a wrong number of nodes, and for options that the proxy refuses. Raises
    Unsupported if the provisioner does not offer what the spec needs.
    """
    topology = topologies.topology(spec.topology)
    proxy = proxy_class(spec.proxy) if spec.proxy else None
    if wrong := topology.wrong_size(spec.nodes):
        raise ConfigError(wrong)
    if proxy:
        proxy.read_settings(spec, topology)
    if missing := provisioner.unmet(spec):
        raise Unsupported(missing)
    if needs := topology.needs - provisioner.offers:
        reasons = "; ".join(filter(None, (provisioner.missing.get(power, "") for power in sorted(needs))))
        raise Unsupported(
            f"{spec.topology} needs {', '.join(sorted(needs))}, which this provisioner does not offer"
            + (f": {reasons}" if reasons else "")
        )
    return topology, proxy


def settings_of(topology: Topology, options: Mapping[str, str], name: str) -> dict[str, str]:
    """The options of the topology itself, with normal values. Raises ConfigError for a value that it does not accept.

    ``name`` is that of the topology.
    """
    found = {}
    for option, value in options.items():
        if option not in topology.settings:
            continue
        values = topology.settings[option]
        known = {"1": "ON", "0": "OFF"}.get(value, value.upper())
        if known not in values:
            raise ConfigError(f"option {option}={value!r} of the topology {name}: it accepts {' or '.join(values)}")
        found[option] = known
    return found


def _node_version(release: Release) -> NodeVersion:
    return NodeVersion(release.product, numbers(release.version))


def check_release(release: Release, topology: Topology, proxy: type[Proxy] | None) -> None:
    """Raise ReleaseLacks if a release cannot run the topology, and Unsupported if it cannot use the proxy."""
    if lacking := topology.lacks(release):
        raise ReleaseLacks(lacking)
    if proxy and (lacking := proxy.lacks(release)):
        raise Unsupported(lacking)

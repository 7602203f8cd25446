"""Resolution: what a spec means on this machine, looked up and checked once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psutil

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.proxy import Proxy, proxy_class
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers import parity
from pytest_dbcluster.clusters.servers.data_template import Template
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.clusters.topology import Topology, topology
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioner import Provisioner, memory_share
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import PARITIES, ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.variants import References, Variant, split


class ReleaseLacks(Unsupported):
    """A release lacks what a topology takes, such as a plugin or a library."""


class Resolution:
    """Resolves the specs of a run: to their release, topology, proxy class, dialect and server options.

    below: the options of ``--db-cnf`` by their sections. fragments: the directory of my.cnf fragments.
    parity_profile: that of specs that name none. ``overridden`` collects a line for each option that is not taken, and
    for each choice that a proxy makes.
    """

    def __init__(
        self,
        provisioner: Provisioner,
        *,
        fragments: Path,
        below: opts.Sections,
        progress: Report,
        parity_profile: str = PARITIES[0],
    ) -> None:
        self.provisioner = provisioner
        self.progress = progress
        self.overridden: list[str] = []
        self._fragments = fragments
        self._below = dict(below)
        self._parity = parity_profile
        self._releases: dict[ReleaseName, Release] = {}
        self._references = References(provisioner, progress)

    def release(self, name: ReleaseName) -> Release:
        """The programs of a release, found or fetched once a run. Raises what ``releases.find.find`` raises."""
        if name not in self._releases:
            self._releases[name] = self.provisioner.supply(name, self.progress)
        return self._releases[name]

    def resolve(self, spec: ClusterSpec, *, switched: bool = True) -> Variant:
        """The spec with all that was looked up for it, and its options checked against the server's own list.

        ``switched``: its cluster may serve other variants too, so that its options are split into those that a start
        needs and those that a switch sets. Otherwise all are static, and no server is started to find out.
        Raises ConfigError for what is unknown or refused, Unsupported for what this machine or release cannot do.
        """
        if spec.release is None:
            raise ConfigError(f"cluster {spec} names no release, and the run gave it none")
        form, proxy = look_up(spec, self.provisioner)
        release = self.release(spec.release)
        check_release(release, form, proxy)
        options, common, made = self._options(spec, release)
        if proxy and (line := proxy.remark(form, release)):
            self._note(line)
        words = dialect(release.product, release.version)
        alone = Variant(spec, release, form, proxy, words, static=tuple(sorted(options.items())), dynamic=())
        if not switched:
            return alone
        variant = split(alone, made.variables, common)
        return alone if self._references.changes(variant, made.variables) is None else variant

    def _options(self, spec: ClusterSpec, release: Release) -> tuple[dict[str, str], dict[str, str], Template]:
        """The options of a spec, those of them that every cluster of the run has, and the template they start from."""
        memory = memory_share(spec, psutil.virtual_memory().total)
        same = parity.options(spec.parity or self._parity, release, spec.topology)
        own, lines = opts.resolve(spec, release.product, fragments=self._fragments, below=self._below, memory=memory)
        wanted = {**same, **own}
        made = self._template(release, wanted)
        options, absent = opts.fit(wanted, made, release)
        self._note(*lines, *absent)
        below, _ = opts.of_server(release.product, self._below, "--db-cnf")
        common = {**same, **{name: opts.share(value, memory) for name, value in below.items()}}
        return options, {name: value for name, value in common.items() if name in options}, made

    def _note(self, *lines: str) -> None:
        self.overridden += [line for line in lines if line not in self.overridden]

    def changes(self, variant: Variant) -> dict[str, str]:
        """What a switch to this variant sets on the cluster that was started with its static options."""
        made = self._template(variant.release, variant.options)
        return self._references.changes(variant, made.variables) or {}

    def defaults(self, variant: Variant) -> dict[str, str]:
        """The variables that a variant's servers would start with if their topology set none. Starts no cluster."""
        known = self._template(variant.release, variant.options).variables
        return {name: variable.value for name, variable in known.items()} | variant.options

    def _template(self, release: Release, options: Mapping[str, str]) -> Template:
        return ready_template(release, self.provisioner, options, self.progress)


def look_up(spec: ClusterSpec, provisioner: Provisioner) -> tuple[Topology, type[Proxy] | None]:
    """The topology and the proxy class of a spec, before anything is fetched or started.

    Raises ConfigError for unknown names and for a number of nodes that the topology cannot have, Unsupported for what
    the provisioner does not offer.
    """
    form = topology(spec.topology)
    proxy = proxy_class(spec.proxy) if spec.proxy else None
    if wrong := form.wrong_size(spec.nodes):
        raise ConfigError(wrong)
    if missing := provisioner.unmet(spec):
        raise Unsupported(missing)
    if needs := form.needs - provisioner.offers:
        raise Unsupported(f"{spec.topology} needs {', '.join(sorted(needs))}, which this provisioner does not offer")
    return form, proxy


def check_release(release: Release, form: Topology, proxy: type[Proxy] | None) -> None:
    """Raise ReleaseLacks for a release that cannot be the topology, Unsupported for one without the proxy."""
    if lacking := form.lacks(release):
        raise ReleaseLacks(lacking)
    if proxy and (lacking := proxy.lacks(release)):
        raise Unsupported(lacking)

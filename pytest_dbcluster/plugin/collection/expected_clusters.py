"""The clusters that measuring tests will start, and the tests that will be skipped, as far as their code shows it.

Nothing is started or downloaded for this. A cluster is described by a *key*: clusters with equal keys are one. The keys
follow ``testbed.variants.Variant.cluster_key``. Whether an option needs a server of its own is known from the release's
template in the cache; without a template only options that always do count.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.errors import DBClusterError
from pytest_dbcluster.plugin.collection.code_of_test import Call, Unseen, code_of
from pytest_dbcluster.spec import ClusterSpec, ReleaseName, normal_option

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.settings import Settings

# As in testbed.pool and testbed.testbed, which a list of tests does not wait for.
SIDE_BY_SIDE, INSTANCES = 2, 2

Key = tuple[object, ...]


class ExpectedClusters:
    """What is known without the options of a run: each file and release has one cluster, and only marks skip tests.

    has_skip_mark: whether a mark of pytest skips a test.
    """

    def __init__(self, has_skip_mark: Callable[[Any], bool] = lambda item: False) -> None:
        self._has_skip_mark = has_skip_mark

    def of(self, item: Any) -> list[list[Key]]:
        """The clusters that a test needs side by side, one list for each of its measurements."""
        return [[(item.path, str(_own_release(item)))]]

    def skips(self, item: Any) -> bool:
        """Whether a test will be skipped."""
        return self._has_skip_mark(item)


class OfRun(ExpectedClusters):
    """What is known with the options of a run and the code of its tests."""

    def __init__(self, settings: Settings, has_skip_mark: Callable[[Any], bool]) -> None:
        super().__init__(has_skip_mark)
        self._settings = settings
        self._static: dict[tuple[ClusterSpec, ReleaseName], Key] = {}
        self._unsupported: dict[tuple[ClusterSpec, ReleaseName], bool] = {}

    def of(self, item: Any) -> list[list[Key]]:
        """The clusters that a test needs side by side, one list for each ``measure(...)`` of its code."""
        release = _own_release(item) or self._settings.releases[0]
        return [self._keys(call, release) for call in code_of(item).calls if call.on] or super().of(item)

    def skips(self, item: Any) -> bool:
        """Whether a test will be skipped: by a mark, or because this machine or release cannot run its clusters."""
        if super().skips(item):
            return True
        release = _own_release(item) or self._settings.releases[0]
        specs = [spec for call in code_of(item).calls for spec in call.on if isinstance(spec, ClusterSpec)]
        return any(self._is_unsupported(spec, release) for spec in specs)

    def _keys(self, call: Call, release: ReleaseName) -> list[Key]:
        kinds = {_kind(spec, release) for spec in call.on}
        instances = call.instances or (INSTANCES if len(kinds) > 1 else 1)
        return [
            (*self._key(spec, release), tables, number)
            for number in range(instances)
            for spec in call.on
            for tables in dict.fromkeys(map(_tables, call.workloads))
        ]

    def _key(self, spec: object, release: ReleaseName) -> Key:
        if not isinstance(spec, ClusterSpec):
            return (str(spec), str(release))
        asked = (spec, spec.release or release)
        if asked not in self._static:
            own = spec.on_storage(self._settings.storage)
            static = tuple(self._static_options(own, asked[1]))
            self._static[asked] = (
                own.topology,
                own.nodes,
                str(asked[1]),
                own.proxy,
                own.needs.without_network,
                own.instance,
                static,
            )
        return self._static[asked]

    def _static_options(self, spec: ClusterSpec, release: ReleaseName) -> Iterator[tuple[str, str]]:
        """The options of a spec that need servers that were started with them."""
        from pytest_dbcluster.clusters.servers import cnf_file, options
        from pytest_dbcluster.clusters.servers.data_template import known_variables
        from pytest_dbcluster.clusters.servers.variables import ALWAYS_STATIC, needs_start

        variables = known_variables(release.product, release.version)
        with contextlib.suppress(DBClusterError, OSError):  # the test itself will raise it
            own: dict[str, str] = {}
            for name in spec.cnf:  # all sections: which of them are read, only the server itself could say
                file = cnf_file.read(options.file_of(name, self._settings.fragments), self._settings.cnf_root)
                own |= {normal_option(entry.name): entry.value or "" for entry in file.entries}
            for name, value in sorted({**own, **dict(spec.options)}.items()):
                if name in ALWAYS_STATIC or (name in variables and needs_start(variables[name])):
                    yield name, value

    def _is_unsupported(self, spec: ClusterSpec, release: ReleaseName) -> bool:
        asked = (spec, release)
        if asked not in self._unsupported:
            self._unsupported[asked] = False
            with contextlib.suppress(DBClusterError, OSError):
                self._unsupported[asked] = bool(self._lacks(spec, release) or self._unmet(spec))
        return self._unsupported[asked]

    def _lacks(self, spec: ClusterSpec, name: ReleaseName) -> str:
        """Why the release of the run cannot run a spec, where its programs are on this machine already."""
        from pytest_dbcluster.clusters import topology
        from pytest_dbcluster.releases import fetched, find

        if spec.release or self._settings.provisioner != "local":
            return ""  # a spec that names its release is an error instead, and images bring their own programs
        on_disk = name.directory or name.version == "path"
        release = find.find(name) if on_disk else fetched.lookup(name.product, name.version)
        return topology.topology(spec.topology).lacks(release) if release else ""

    def _unmet(self, spec: ClusterSpec) -> str:
        """Which limits of its hosts a spec cannot have on this machine."""
        from pytest_dbcluster.hosts.provisioner import provisioner_class

        if not spec.on_storage(self._settings.storage).needs.powers:
            return ""
        with contextlib.closing(provisioner_class(self._settings.provisioner)()) as provisioner:
            return provisioner.unmet(spec.on_storage(self._settings.storage))


def starts_of(needed: Sequence[Sequence[Key]]) -> int:
    """How many clusters start for these measurements, one after the other, each with the clusters that it needs.

    As ``testbed.pool.Pool`` does it: a few clusters run at once, and the one that was not used for longest ends first.
    """
    running: dict[Key, None] = {}
    starts = 0
    for keys in needed:
        unused = [key for key in running if key not in keys]
        while unused and len({*running, *keys}) > max(SIDE_BY_SIDE, len(set(keys))):
            del running[unused.pop(0)]
        starts += len(set(keys) - set(running))
        for key in keys:
            running.pop(key, None)
            running[key] = None
    return starts


def _own_release(item: Any) -> ReleaseName | None:
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("db_release")


def _kind(spec: object, release: ReleaseName) -> Key:
    """Topology and release of a cluster, which decide whether each variant gets two instances."""
    if isinstance(spec, ClusterSpec):
        return (spec.topology, str(spec.release or release))
    return (str(spec).partition("(")[0],)


def _tables(workload: object) -> str:
    """The data set that servers start with for a workload; empty for none. Of an unseen one the function's name."""
    if isinstance(workload, Unseen):
        return workload.text.partition("(")[0]
    return str(getattr(workload, "data_set", ""))

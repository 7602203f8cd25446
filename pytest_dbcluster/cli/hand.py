"""A cluster for hand work: brought up, written down, left running."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from pytest_dbcluster.clusters import kept
from pytest_dbcluster.clusters.cluster import bring_up, ready_template
from pytest_dbcluster.clusters.proxy import remark
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.hosts.provisioner import memory_share, programs, provisioner_class
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system.machine_lock import Turns


def leave_running(
    spec: ClusterSpec,
    below: opts.Sections,
    *,
    where: str = "local",
    images: Mapping[str, str] | None = None,
    progress: Callable[[str], None],
) -> str:
    """Bring the cluster up and leave it; the text that says how to connect.

    ``below`` are server options under those of the spec, by sections of a my.cnf; ``where`` is a provisioner, and
    ``images`` are those of its releases where it is not to choose. Whatever ends this early, Ctrl-C included, leaves
    nothing.
    """
    assert spec.release
    made_by: Any = provisioner_class(where)
    provisioner = made_by(keep=True, chosen=dict(images)) if images else made_by(keep=True)
    with Turns.on(provisioner.offers, provisioner.run_id, progress).building(), contextlib.closing(provisioner):
        release = programs(provisioner, spec.release, progress)
        memory = memory_share(spec, psutil.virtual_memory().total)
        options, overridden = opts.resolve(spec, release.product, fragments=Path(), below=below, memory=memory)
        made = ready_template(release, provisioner, options, progress)
        options, absent = opts.fit(options, made, release)
        for line in (*overridden, *absent):
            progress(line.replace("--db-cnf", "--cnf"))
        if spec.proxy and (line := remark(spec.proxy, topology(spec.topology), release)):
            progress(line)
        progress(f"starting {spec.nodes} x {release.name} {release.version} as {spec.topology}")
        cluster = bring_up(spec, release, provisioner, options=options, progress=progress)
        progress(f"ready in {cluster.ready_seconds:.1f} s")
        return kept.describe(kept.write(cluster, provisioner, name=spec.name))

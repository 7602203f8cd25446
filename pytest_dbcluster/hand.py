"""A cluster for hand work: brought up, written down, left running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from pytest_dbcluster import kept
from pytest_dbcluster import options as opts
from pytest_dbcluster.cluster import bring_up, ready_template
from pytest_dbcluster.provisioners.local import LocalProvisioner
from pytest_dbcluster.proxy import remark
from pytest_dbcluster.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.topology import topology


def leave_running(spec: ClusterSpec, release: Release, below: opts.Sections, *, progress: Callable[[str], None]) -> str:
    """Bring the cluster up and leave it; the text that says how to connect.

    ``below`` are server options under those of the spec, by sections of a my.cnf. Whatever ends this early, Ctrl-C
    included, leaves nothing.
    """
    provisioner = LocalProvisioner(keep=True)
    try:
        memory = psutil.virtual_memory().total // spec.nodes
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
    finally:
        provisioner.close()

"""``dbcluster up``: start a cluster, leave it running, and print how to connect."""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.cli.clusters import add_cluster, add_server_option, options_of
from pytest_dbcluster.cli.text import own_options, tell
from pytest_dbcluster.clusters import kept, proxy, topology
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.clusters.servers.cnf_file import CnfFile
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.errors import ConfigError, Unsupported, merge_names
from pytest_dbcluster.formatting import Report, option_seconds
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.given import LOCAL_PLACES, add_common
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.hosts.network import measured_back
from pytest_dbcluster.hosts.network.measured_back import MeasuredBack
from pytest_dbcluster.hosts.provisioner import Keeps, module_of, parse_images, provisioner_class
from pytest_dbcluster.spec import PARITIES, ClusterSpec
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.machine_lock import Turns
from pytest_dbcluster.testbed.resolution import Resolution


def add_up(up: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster up`` to its parser."""
    up.set_defaults(run=run_up)
    up.usage = "%(prog)s TOPOLOGY [options]"
    up.epilog = (
        "example: dbcluster up galera --proxy haproxy --option innodb_flush_log_at_trx_commit=2 --name mine; "
        "dbcluster down mine ends it"
    )
    add = add_cluster(up, "what to start")
    add("--name", default="", help="a name for dbcluster ps and down (default: topology and nodes)")
    add = up.add_argument_group("options of the servers").add_argument
    add_server_option(add)
    add("--cnf", metavar="FILE", help="a my.cnf with server options for every node; --option overrides them")
    add_common(add, "--cnf-root")
    add_common(add, "--parity", choices=PARITIES, default=PARITIES[0])
    add = up.add_argument_group("where").add_argument
    add(
        "--provisioner", default="local", metavar="NAME", help=f"where the cluster runs (default local): {LOCAL_PLACES}"
    )
    add_common(add, "--image", action="append", default=[])
    add("--rtt", metavar="TIME", help="round-trip time between two nodes, such as 5ms (default: no delay)")


def run_up(arguments: argparse.Namespace) -> int:
    """``dbcluster up TOPOLOGY``: start a cluster, leave it running, and print how to connect."""
    module_of(arguments.provisioner)
    if (elsewhere := arguments.provisioner) in ("ssh", "ec2"):
        raise ConfigError(
            "up cannot leave a cluster on machines behind ssh, because servers there end with the command; "
            f"measure on them with dbcluster compare --provisioner {elsewhere} or with a test"
            + (", which leaves its cluster running with --db-keep" if elsewhere == "ec2" else "")
            + ", or use --provisioner local"
        )
    topology.topology(arguments.topology)
    if arguments.proxy:
        registry.find("proxy", arguments.proxy, planned=proxy.PLANNED)
    nodes = topology.usual_nodes(arguments.topology) if arguments.nodes is None else arguments.nodes
    root = Path(arguments.cnf_root) if arguments.cnf_root else None
    below = cnf_file.read(Path(arguments.cnf), root) if arguments.cnf else None
    spec = ClusterSpec(
        arguments.topology, nodes=nodes, release=arguments.release, proxy=arguments.proxy, parity=arguments.parity
    )
    spec = spec.with_options(options_of(arguments.option))
    if arguments.rtt is not None:
        spec = spec.with_needs(rtt=option_seconds("--rtt", arguments.rtt, "5ms"))
    spec = spec.named(arguments.name)
    if arguments.name:
        free_name(arguments.name)
    images = parse_images(arguments.image, arguments.provisioner)
    print(leave_running(spec, below, where=arguments.provisioner, images=images, progress=tell))
    return 0


def leave_running(
    spec: ClusterSpec,
    below: CnfFile | None,
    *,
    where: str = "local",
    images: Mapping[str, str] | None = None,
    progress: Report,
) -> str:
    """Start a cluster and leave it running; return the text that says how to connect.

    - below: a my.cnf; options of the spec override it.
    - where: the name of a provisioner.
    - images: container images by release; the provisioner chooses the image of other releases.

    If the spec needs a network, ``progress`` gets the required and measured values. An error or Ctrl-C removes
    everything that this started. Raises Unsupported for a provisioner that cannot leave a cluster running.
    """
    chosen_class = provisioner_class(where)
    provisioner = chosen_class(keep=True, chosen=dict(images)) if images else chosen_class(keep=True)
    if not isinstance(provisioner, Keeps):
        raise Unsupported(f"the provisioner {where} cannot leave a cluster running")
    provisioner.logs = KeptLogs(cache.root() / "logs", "up")
    shutil.rmtree(provisioner.logs.directory / "up", ignore_errors=True)  # logs of the last failed start
    turns = Turns.on(provisioner.offers, provisioner.run_id, progress)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(provisioner))
        resolution = Resolution(provisioner, fragments=Path(), below=below, progress=progress)
        resolution.building = turns.building
        variant = resolution.resolve(spec, switched=False)
        for line in merge_names(resolution.overridden):
            progress(own_options(line, ("cnf", "cnf_root")))
        stack.enter_context(turns.building())
        servers = variant.topology.servers(spec.nodes)
        progress(f"starting {servers} x {variant.release_name} {variant.version} as {spec.topology}")
        cluster = bring_up(variant.to_start(), provisioner, progress=progress)
        progress(f"ready in {cluster.ready_seconds:.1f} s")
        if cluster.path and (asked := spec.needs.network):
            back = MeasuredBack()
            back.before(spec.short_name, cluster.path, asked)
            progress(measured_back.line(spec.short_name, asked, back.of(spec.short_name)))
        return kept.describe(kept.write(cluster, provisioner, name=spec.name))


def free_name(name: str) -> None:
    """Raise ConfigError if a kept cluster of this user has this name."""
    for run in runs.list_runs():
        if run.mine and any(cluster.name == name for cluster in kept.read(run.directory)):
            raise ConfigError(f"a kept cluster already has the name {name!r} (run {run.run_id}); choose another --name")

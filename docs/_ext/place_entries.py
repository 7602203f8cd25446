"""Topologies, proxies, provisioners, releases, storage profiles and workloads, from the package."""

from __future__ import annotations

import dataclasses
import importlib
import inspect

import examples
from entries import after_colon, code, codes, entry, example, markdown, page, table

import pytest_dbcluster
from pytest_dbcluster import registry, spec
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.releases import catalogue
from pytest_dbcluster.releases.catalogue import Offer
from pytest_dbcluster.releases.vendors.repository import ARCHIVES
from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS
from pytest_dbcluster.workloads.workload import Workload


def _modules(kind: str) -> list[tuple[str, object]]:
    """(name, module) of each implementation of this package."""
    found = registry.names(kind).items()
    return [(name, importlib.import_module(module)) for name, module in found if module.startswith("pytest_dbcluster.")]


def _first(module: object) -> str:
    return after_colon(markdown(inspect.getdoc(module)))


def topologies() -> str:
    """Every topology: what it is, its nodes, what it needs, its own options, and an example."""
    return page(_topology(name, module) for name, module in _modules("topology"))


def _topology(name: str, module: object) -> str:
    topology: type[Topology] = module.TOPOLOGY  # type: ignore[attr-defined]
    facts = [f"Nodes: {topology.minimum_nodes} or more."]
    if topology().wrong_size(3):
        facts = [f"Nodes: {topology.minimum_nodes}."]
    if topology.needs:
        facts.append(f"Hosts need {codes(sorted(topology.needs))}.")
    settings = [
        f"{code(option)} ({', '.join(map(code, values))}; the first is the default)"
        for option, values in topology.settings.items()
    ]
    if settings:
        facts.append(f"Options of the topology: {'; '.join(settings)}.")
    return entry("topology", name, _first(module), " ".join(facts), example(examples.TOPOLOGIES[name]))


def proxies() -> str:
    """Every proxy, its options, and whether we have run it."""
    return page(_proxy(name, module) for name, module in _modules("proxy"))


def _proxy(name: str, module: object) -> str:
    proxy: type[Proxy] = module.PROXY  # type: ignore[attr-defined]
    untried = f"We have never run it, and cannot fetch it: {code(proxy.name)} has to be on PATH."
    parts = [untried] if proxy.untried else []
    if proxy.options:
        rows = [(code(one.name), one.text(one.default), one.accepts, markdown(one.what)) for one in proxy.options]
        parts += ["Its options in `proxy_options`:", table(("option", "default", "accepts", "what it does"), rows)]
    return entry("proxy", name, _first(module), *parts, example(examples.PROXIES[name]))


def provisioners() -> str:
    """Every provisioner."""
    return page(
        entry("provisioner", name, _first(module), example(f"pytest --db-provisioner {name}"))
        for name, module in _modules("provisioner")
    )


def releases() -> str:
    """Every release and tool that can be fetched, with its sources."""
    return page(_release(offer) for offer in catalogue.OFFERS)


def _release(offer: Offer) -> str:
    sources = [_source(offer, supplier) for supplier in offer.suppliers]
    use = f"pytest --db-release {offer.name}" if offer.version else f"dbcluster fetch {offer.name}"
    return entry(
        "release",
        offer.name,
        examples.PRODUCTS[offer.product],
        f"Packages: {codes(offer.origins[0].packages)}.{_extras(offer)}",
        *sources,
        *([f"Licence: {licence}."] if (licence := catalogue.LICENCES.get(offer.product)) else []),
        example(use),
    )


def _extras(offer: Offer) -> str:
    extras = dict.fromkeys(extra for origin in offer.origins for extra in origin.extras)
    return f" If the source has it, also {' or '.join(map(code, extras))}." if extras else ""


def _source(offer: Offer, supplier: str) -> str:
    """One source of an offer: its suites, and whether we have tried them."""
    origins = [origin for origin in offer.origins if origin.supplier == supplier]
    suites = [f"{code(one.suite)}{f' (exactly {one.exact})' if one.exact else ''}" for one in origins]
    state = "tried here" if origins[0].is_tried else "untried"
    return f"From {supplier} ({state}): {', '.join(suites)}."


def servers() -> str:
    """A row for each server and source: the release, who supplies it, suites, licence, and whether we tried it."""
    rows = [
        (code(offer.name), supplier, codes(suites), catalogue.LICENCES[offer.product], state)
        for offer in catalogue.OFFERS
        if offer.version
        for supplier in offer.suppliers
        for suites, state in [_suites(offer, supplier)]
    ]
    exact = [(product, archive.title, "of that version") for product, archive in ARCHIVES.items()]
    exact += [(product, archive.title, "none: tarballs") for product, archive in TARBALLS.items()]
    rows += [
        (code(f"{product}:X.Y.Z"), title, suites, catalogue.LICENCES[product], "untried")
        for product, title, suites in exact
    ]
    return table(("release", "source", "suites", "licence", "state"), rows)


def _suites(offer: Offer, supplier: str) -> tuple[list[str], str]:
    origins = [origin for origin in offer.origins if origin.supplier == supplier]
    return [origin.suite for origin in origins], "tried here" if origins[0].is_tried else "untried"


def storage() -> str:
    """Every storage profile."""
    return page(
        entry(
            "storage",
            profile.name,
            f"{profile.what[0].upper()}{profile.what[1:]}.",
            f"Limit: {f'{profile.iops} write operations a second' if profile.iops else 'none'}.",
            example(f'spec.with_storage("{profile.name}")'),
        )
        for profile in spec.STORAGE_PROFILES.values()
    )


def workload_classes() -> list[type[Workload]]:
    """The public workloads."""
    public = [getattr(pytest_dbcluster, name) for name in pytest_dbcluster.__all__]
    return [one for one in public if inspect.isclass(one) and issubclass(one, Workload) and one is not Workload]


def workloads() -> str:
    """Every workload: what it runs, its default metric, its fields, and an example."""
    return page(_workload(workload) for workload in sorted(workload_classes(), key=lambda one: one.__name__))


def _workload(workload: type[Workload]) -> str:
    name = workload.__name__
    spread = "All load hosts share a round." if workload.divides else "The first load host runs the round."
    fields = ", ".join(field.name for field in dataclasses.fields(workload) if field.init)  # type: ignore[arg-type]
    return entry(
        "workload",
        name,
        f"Default metric: {{metric}}`{workload.metric}`. {spread}",
        example(examples.WORKLOADS[name]),
        f"```{{eval-rst}}\n.. autoclass:: pytest_dbcluster.{name}\n   :members: {fields}\n   :undoc-members:\n```",
    )

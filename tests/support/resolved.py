"""Variants as values, for the tests of what is made from them."""

from __future__ import annotations

from pytest_dbcluster.measuring.evidence import ResolvedSpec, SpecDocument


def resolved(name: str, release: str = "mariadb:10.11", **options: str) -> ResolvedSpec:
    """A lone server."""
    document = SpecDocument("standalone", 1, release, "10.11.19", "", options, (), "", "", "vendor")
    return ResolvedSpec(name, document, options)

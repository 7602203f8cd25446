"""Kinds of claims: one file each, and nobody else asks which one it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pytest_dbcluster
from pytest_dbcluster.claims.claim import KINDS, Claim

PACKAGE = Path(pytest_dbcluster.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if PACKAGE / "claims" / "kinds" not in path.parents)


def compared(source):
    """The texts that a module compares with something, or matches."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare | ast.MatchValue):
            yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))


def test_nobody_else_compares_the_name_of_a_kind():
    """What depends on the kind is a member of ``Kind``."""
    quoted = re.compile(rf"""(["'])({"|".join(KINDS)})\1""")  # reading the tree of every module takes a second
    texts = {str(module.relative_to(PACKAGE)): module.read_text() for module in MODULES}
    found = {module: set(KINDS) & set(compared(text)) for module, text in texts.items() if quoted.search(text)}

    assert {module: names for module, names in found.items() if names} == {}


def test_a_comparison_with_a_name_is_found():
    """The test above can fail."""
    assert {"beats", "lower"} <= set(compared('x.kind == "beats" or x.kind in ("fades", "lower")'))


def test_a_claim_of_an_unknown_kind_is_refused():
    """Such as one in the results of another version; the known kinds are listed."""
    with pytest.raises(ValueError, match=r"unknown kind of claim 'wins'; known: beats, below, differs, .*scales"):
        Claim("wins", 0.0)

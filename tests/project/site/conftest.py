"""What tests of the site share: the modules of its extensions, and the published claims."""

from __future__ import annotations

import sys

import pytest

from tests.support.published import EXTENSIONS, module


@pytest.fixture(scope="module")
def extensions():
    """The modules of the extensions can import each other."""
    before = set(sys.modules)
    sys.path.insert(0, str(EXTENSIONS))
    yield
    sys.path.remove(str(EXTENSIONS))
    for name in {path.stem for path in EXTENSIONS.glob("*.py")} - before:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def known(extensions):
    """The published claims of the suites."""
    return module("published_claims").claims()

"""The public face of the package: its names, loaded when they are asked for, and typed for users."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_dbcluster

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", pytest_dbcluster.__all__)
def test_each_public_name_is_there(name):
    """It can be imported from the package itself, and says what it is."""
    assert getattr(pytest_dbcluster, name).__doc__
    assert name in dir(pytest_dbcluster)


def test_the_package_says_its_version():
    """With numbers, as an index orders them."""
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", pytest_dbcluster.__version__)


def test_a_name_that_is_not_public_is_no_attribute():
    """As for any module."""
    with pytest.raises(AttributeError, match=r"^module 'pytest_dbcluster' has no attribute 'Clusterspec'$"):
        pytest_dbcluster.Clusterspec  # noqa: B018


def test_the_package_alone_loads_nothing():
    """Only a name that is asked for is loaded."""
    program = (
        "import sys, pytest_dbcluster; print(*(name for name in sys.modules if name.startswith('pytest_dbcluster.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_measure_is_typed_for_users():
    """Mypy knows what measure(...), the claims and a sweep give in a test file."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", ".mypy_cache", "tests/typing/api.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout

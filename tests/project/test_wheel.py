"""The wheel: it has every file that the package needs, and works without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pytest_dbcluster.reporting.charts import claim as claim_chart
from tests.support.records import failed
from tests.support.results import results

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_dbcluster"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout, unpacked."""
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [built] = place.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(place / "unpacked")
    return place / "unpacked"


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    """Schemas, templates, styles, scripts of workloads, the agent's program, prices and the mark of types too."""
    files = {
        str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {str(path.relative_to(wheel)) for path in wheel.rglob("*") if path.is_file()}

    assert {
        "pytest_dbcluster/py.typed",
        "pytest_dbcluster/hosts/agent.sh",
        "pytest_dbcluster/hosts/provisioners/ec2/money/prices.json",
        "pytest_dbcluster/reporting/page/template.html",
        "pytest_dbcluster/reporting/page/style.css",
        "pytest_dbcluster/reporting/schemas/run.schema.json",
        "pytest_dbcluster/reporting/schemas/claims.schema.json",
    } <= files
    assert files - packed == set()


def test_the_wheel_makes_a_page(wheel, tmp_path, monkeypatch):
    """With its own template and style, wherever it is installed."""
    with monkeypatch.context() as patch:
        patch.setattr(claim_chart, "svg", lambda made: None)
        directory = results(tmp_path / "run", [failed()])
    code = "import pytest_dbcluster, sys; from pytest_dbcluster.cli import main; print(pytest_dbcluster.__file__); "
    done = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(main.main(['report', sys.argv[1]]))", str(directory)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [
        f"{wheel}/pytest_dbcluster/__init__.py",
        f"report: {directory}/index.html (1 claim)",
    ]
    assert "flush_2 is not faster than galera3" in (directory / "index.html").read_text()

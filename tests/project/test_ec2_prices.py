"""scripts/ec2_prices.py: the table of prices of the package from two open tables."""

from __future__ import annotations

import datetime
import importlib.util
import json
from pathlib import Path

import msgspec
import pytest

from pytest_dbcluster.hosts.provisioners.ec2.money import prices

ROOT = Path(__file__).resolve().parents[2]
INSTANCES = [
    {
        "instance_type": "t3.medium",
        "vCPU": 2,
        "pricing": {
            "eu-central-1": {"linux": {"ondemand": "0.048"}, "mswin": {"ondemand": "0.9"}},
            "eu-central-1-ham-1": {"linux": {"ondemand": "0.06"}},
            "eu-west-1": {"mswin": {"ondemand": "0.9"}},
            "us-east-1": {"linux": {"ondemand": "0"}},
        },
    },
    {"instance_type": "r6i.large", "vCPU": 2, "pricing": {"us-east-1": {"linux": {"ondemand": "0.126"}}}},
]
VOLUMES = """
    "gp3": {Region: "us-east-1", Type: "gp3", PriceGB: 0.08, PriceIOPS: 0.0050000000, PriceThroughput: 0.04096, X: 1},
    "io2": {Region: "us-east-1", Type: "io2", PriceGB: 0.125, PriceIOPS: 0, PriceThroughput: 0, X: false},
    "st1": {Region: "us-east-1", Type: "st1", PriceGB: 0.045, PriceIOPS: 0, PriceThroughput: 0, X: false},
"""


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("ec2_prices", ROOT / "scripts" / "ec2_prices.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_has_prices_of_linux_in_regions(script):
    """Other systems, local zones, other volumes and prices of 0 are left out; a GiB/s becomes 1024 MiB/s."""
    made = script.table(INSTANCES, datetime.date(2025, 5, 28), VOLUMES)

    assert made["regions"] == ["eu-central-1", "us-east-1"]
    assert made["instances"] == {"r6i.large": [None, 0.126], "t3.medium": [0.048, None]}
    assert made["others"] == {
        "gp3": [None, 0.08],
        "gp3-iops": [None, 0.005],
        "gp3-throughput": [None, 0.04],
        "io2": [None, 0.125],
    }
    assert made["cpus"] == {"t3.medium": 2}


def test_the_text_of_a_table_can_be_read(script):
    """The package reads what the script writes, without a problem."""
    text = script.text(script.table(INSTANCES, datetime.date(2025, 5, 28), VOLUMES))

    assert msgspec.json.decode(text, type=prices.PriceTable).problem() == ""


def test_the_table_of_the_package_is_of_the_versions_in_the_script(script):
    """A new version in the script without a new table would give prices another date than theirs."""
    document = json.loads(prices.OURS.read_text())

    assert script.text(document) == prices.OURS.read_text()
    assert document["sources"]["instances"]["version"] == script.MODULE_VERSION
    assert document["sources"]["others"] == {
        "name": script.VOLUMES,
        "version": script.VOLUMES_VERSION,
        "date": str(script.VOLUMES_DATE),
    }

"""Make the table of prices of EC2 in the package from two open tables, each with its version and date.

python scripts/ec2_prices.py --volumes FILE

Prices of instances: the Go module github.com/cristim/ec2-instances-info (data of ec2instances.info, MIT licence), which
`go mod download` fetches. Prices of volumes: FILE, which is pkg/lib/aws/resource_metadata.go of
github.com/cortexlabs/cortex (Apache-2.0); take it from a checkout of the commit below. Prices that neither has, such as
those of a public IPv4 address and of CPU credits, stay unknown.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_dbcluster.hosts.provisioners.ec2.money import prices
from pytest_dbcluster.hosts.provisioners.ec2.settings import TYPE

MODULE = "github.com/cristim/ec2-instances-info"
MODULE_VERSION = "v0.0.0-20250528091325-32acf84f42eb"
VOLUMES = "github.com/cortexlabs/cortex"
VOLUMES_VERSION, VOLUMES_DATE = "78de0c6e2d7bc6cb61e691b0eda681bc90c892fb", datetime.date(2022, 9, 3)
# `"gp3": {Region: "af-south-1", Type: "gp3", PriceGB: 0.1047, PriceIOPS: 0.0065, PriceThroughput: 0.0536576, ...},`
VOLUME = re.compile(
    r'\{Region: "(?P<region>[^"]+)", Type: "(?P<kind>[^"]+)", PriceGB: (?P<gib>[0-9.]+), PriceIOPS: (?P<iops>[0-9.]+), '
    r"PriceThroughput: (?P<throughput>[0-9.]+),"
)
KINDS = ("gp2", "gp3", "io1", "io2")
# That table has the price of a GiB/s divided by 1000; a GiB/s has 1024 MiB/s.
PER_MIB = 1000 / 1024
DIGITS = 10
COMPACT = (",", ":")


def module_data(version: str) -> tuple[list[dict[str, Any]], datetime.date]:
    """The instances of the module in this version, and the day on which it was made."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            ["go", "mod", "download", "-json", f"{MODULE}@{version}"],
            cwd=directory,
            env={**os.environ, "GOFLAGS": "-mod=mod"},
            stdout=subprocess.PIPE,
            check=True,
        )
    about = json.loads(done.stdout)
    made = json.loads(Path(about["Info"]).read_text())["Time"]
    return json.loads((Path(about["Dir"]) / "data" / "instances.json").read_text()), datetime.date.fromisoformat(
        made[:10]
    )


def instance_prices(instances: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Type -> region -> USD for an hour with Linux, on demand. A price of 0 is none; local zones are left out."""
    found: dict[str, dict[str, float]] = {}
    for instance in instances:
        for region, systems in instance["pricing"].items():
            price = float(systems.get("linux", {}).get("ondemand") or 0)
            if price > 0 and prices.REGION.fullmatch(region) and TYPE.fullmatch(instance["instance_type"]):
                found.setdefault(instance["instance_type"], {})[region] = price
    return found


def volume_prices(text: str) -> dict[str, dict[str, float]]:
    """Name of a price, such as gp3-iops -> region -> USD for a month. A price of 0 is none."""
    found: dict[str, dict[str, float]] = {}
    for row in VOLUME.finditer(text):
        if row["kind"] not in KINDS:
            continue
        values = {
            row["kind"]: float(row["gib"]),
            f"{row['kind']}-iops": float(row["iops"]),
            f"{row['kind']}-throughput": round(float(row["throughput"]) * PER_MIB, DIGITS),
        }
        for name, price in values.items():
            if price > 0:
                found.setdefault(name, {})[row["region"]] = price
    return found


def table(instances: list[dict[str, Any]], made: datetime.date, volumes: str) -> dict[str, Any]:
    """The document of prices.json."""
    by_type, others = instance_prices(instances), volume_prices(volumes)
    regions = sorted({region for rows in (by_type, others) for row in rows.values() for region in row})
    cpus = {
        one["instance_type"]: one["vCPU"]
        for one in instances
        if prices.BURSTABLE.fullmatch(one["instance_type"].split(".")[0])
    }
    return {
        "format": prices.FORMAT,
        "sources": {
            "instances": {"name": MODULE, "version": MODULE_VERSION, "date": str(made)},
            "others": {"name": VOLUMES, "version": VOLUMES_VERSION, "date": str(VOLUMES_DATE)},
        },
        "regions": regions,
        "instances": {name: [row.get(region) for region in regions] for name, row in sorted(by_type.items())},
        "others": {name: [row.get(region) for region in regions] for name, row in sorted(others.items())},
        "cpus": dict(sorted(cpus.items())),
    }


def text(document: Mapping[str, Any]) -> str:
    """The document as JSON, one price row a line, so that a change can be read."""
    parts = []
    for name, value in document.items():
        if isinstance(value, dict):
            rows = ",\n".join(
                f"  {json.dumps(key)}: {json.dumps(row, separators=COMPACT)}" for key, row in value.items()
            )
            parts.append(f" {json.dumps(name)}: {{\n{rows}\n }}")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: list[str]) -> int:
    """Write the file; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--volumes", required=True, type=Path, metavar="FILE", help="resource_metadata.go of cortex")
    given = parser.parse_args(arguments)
    instances, made = module_data(MODULE_VERSION)
    document = table(instances, made, given.volumes.read_text())
    prices.OURS.write_text(text(document))
    prices.read(prices.OURS)
    print(f"{prices.OURS}: {len(document['instances'])} types in {len(document['regions'])} regions")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

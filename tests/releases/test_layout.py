"""The paths of programs and files in each vendor's layout."""

from __future__ import annotations

import pytest

from pytest_dbcluster.releases import catalogue, find, layout
from pytest_dbcluster.spec import ReleaseName
from tests.support.vendor_layouts import LAYOUTS, MARIADB, MYSQL, PERCONA, PXC, lay_out


@pytest.mark.parametrize("name", LAYOUTS)
def test_everything_is_found_in_a_vendors_layout(name, tmp_path, monkeypatch):
    """Programs, plugins, messages, character sets and the Galera library, wherever the vendor has them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "server"
    made = LAYOUTS[name]
    lay_out(made, root)
    plugins, messages, charsets, galera = (str(root / path) if path else None for path in made.paths)

    found = find.find(ReleaseName.parse(f"{made.release}={root}"))

    assert found.server_options | {"basedir": ""} == layout.privacy_options(found.product) | {
        "basedir": "",
        "plugin-dir": plugins,
        "lc-messages-dir": messages,
        "character-sets-dir": charsets,
    }
    assert str(found.wsrep_provider or "") == (galera or "")
    assert made.programs <= {path.name for path in found.bin.iterdir()}


def test_xtrabackup_lies_beside_the_script_of_a_transfer(tmp_path, monkeypatch):
    """The script looks for it in pxc_extra of its own directory, which is bin/ of the release."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lay_out(LAYOUTS["PXC's packages"], tmp_path / "server")
    found = find.find(f"pxc:8.4={tmp_path / 'server'}")

    assert (found.bin / "wsrep_sst_xtrabackup-v2").exists()
    assert (found.bin / "pxc_extra" / "README").exists()


@pytest.mark.parametrize(
    ("output", "product", "version"),
    [
        (MYSQL, "mysql", "8.4.8"),
        (PERCONA, "percona", "8.4.6"),
        (PXC, "pxc", "8.4.6"),
        (MARIADB, "mariadb", "11.4.10"),
        (f"/opt/percona-and-mariadb/bin/mysqld  {MYSQL}", "mysql", "8.4.8"),
    ],
)
def test_a_server_tells_its_product_and_version(output, product, version):
    """The path of the program does not count."""
    assert (layout.product_of(output), layout.exact_version(output)) == (product, version)


@pytest.mark.parametrize("product", ["mariadb", "mysql", "percona", "pxc"])
def test_no_server_reports_to_its_vendor(product):
    """Servers of Percona would, without this option; older ones ignore it. Their agent is never fetched."""
    options = {"loose-percona-telemetry-disable": "1"} if product in ("percona", "pxc") else {}

    assert layout.privacy_options(product) == options
    assert "percona-telemetry-agent" in catalogue.NOT_FETCHED

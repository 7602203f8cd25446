"""The rows of the vendors' repositories."""

from __future__ import annotations

import pytest

from pytest_dbcluster.releases import catalogue
from pytest_dbcluster.releases.vendors.repository import ARCHIVES, REPOSITORIES


@pytest.mark.parametrize(
    ("product", "series", "family", "address"),
    [
        ("mysql", "8.4", "Debian", "http://repo.mysql.com/apt/debian"),
        ("mysql", "8.0", "Ubuntu", "http://repo.mysql.com/apt/ubuntu"),
        ("mariadb", "11.4", "Debian", "https://deb.mariadb.org/11.4/debian"),
        ("percona", "8.4", "Ubuntu", "http://repo.percona.com/ps-84-lts/apt"),
        ("pxc", "8.0", "Debian", "http://repo.percona.com/pxc-80/apt"),
    ],
)
def test_a_repository_has_an_address_for_each_family(product, series, family, address):
    """MySQL and MariaDB have a directory for each family, Percona one for both."""
    assert REPOSITORIES[product, series].address_for(family, "") == address


def test_an_archive_has_an_address_for_each_version():
    """The exact version is part of it."""
    address = ARCHIVES["mariadb"].address_for("Debian", "11.4.5")

    assert address == "https://archive.mariadb.org/mariadb-11.4.5/repo/debian"


def test_an_architecture_that_a_vendor_lacks_is_named():
    """MySQL has no packages for arm64 on Debian; of other pairs we do not know that they are missing."""
    mysql, mariadb = REPOSITORIES["mysql", "8.4"], REPOSITORIES["mariadb", "11.4"]

    assert mysql.refusal("Debian", "arm64") == "MySQL's repository mysql-8.4-lts has no packages for arm64 on Debian"
    assert [mysql.refusal("Debian", "amd64"), mysql.refusal("Ubuntu", "arm64"), mariadb.refusal("Debian", "arm64")] == [
        "",
        "",
        "",
    ]


def test_every_repository_is_a_source_of_its_series():
    """No row of the repositories is without an offer, and no offer of these products is without its row."""
    offered = {(offer.product, offer.version) for offer in catalogue.OFFERS if any(map(repository_of, offer.origins))}

    assert offered == set(REPOSITORIES)


def repository_of(origin):
    """The repository of an origin."""
    return origin.repository

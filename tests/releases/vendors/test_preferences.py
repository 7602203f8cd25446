"""The text of apt's preferences."""

from __future__ import annotations

from pytest_dbcluster.releases.vendors import preferences


def test_a_vendor_wins_for_its_own_packages():
    """Its other packages stay below those of the distribution, which have 990."""
    assert preferences.of_vendor(("mysql-*", "libmysqlclient*"), "MySQL") == (
        "Package: mysql-* libmysqlclient*\nPin: release o=MySQL\nPin-Priority: 1001\n\n"
        "Package: *\nPin: release o=MySQL\nPin-Priority: 100\n\n"
    )
    assert preferences.DISTRIBUTIONS.count("Pin-Priority: 990") == 2


def test_an_exact_version_wins_over_newer_ones():
    """Its priority is above the vendor's."""
    assert preferences.of_version(("mariadb-*",), "1:11.4.5+maria~deb12") == (
        "Package: mariadb-*\nPin: version 1:11.4.5+maria~deb12\nPin-Priority: 1002\n\n"
    )

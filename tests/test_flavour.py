"""Tests of pytest_dbcluster.flavour."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.flavour import flavour, numbers


def test_an_unknown_vendor_lists_the_known_ones():
    """Words are written down for two vendors."""
    with pytest.raises(Unsupported, match=r"^postgres servers are not known; known: mariadb, mysql$"):
        flavour("postgres")


@pytest.mark.parametrize(("vendor", "version"), [("mysql", "5.7.44"), ("mysql", "8.0.29"), ("mariadb", "10.4.34")])
def test_a_version_that_is_too_old_says_from_when_on(vendor, version):
    """Statements and statuses had other names then."""
    with pytest.raises(Unsupported, match=rf"^{vendor} {version} is too old: .* are known from "):
        flavour(vendor, version)


def test_a_series_is_not_older_than_its_first_known_release():
    """What is known of 8.0.30 holds for 8.0, which says nothing of its patch level."""
    assert flavour("mysql", "8.0").server == "mysqld"


def test_older_versions_have_words_of_their_own():
    """MySQL 8.4 has no performance_schema.variables_metadata, 9.7 has."""
    assert "variables_info" in flavour("mysql", "8.0.43").variables
    assert "variables_info" in flavour("mysql", "8.4.3").variables
    assert "variables_metadata" in flavour("mysql", "9.7.4").variables
    assert "variables_metadata" in flavour("mysql").variables


def test_the_control_connection_to_mysql_is_encrypted():
    """caching_sha2_password sends the password itself when the server has not seen it yet."""
    assert flavour("mysql").control_tls
    assert not flavour("mariadb").control_tls


def test_a_version_is_numbers():
    """Whatever stands between them."""
    assert numbers("10.11.19") == (10, 11, 19)
    assert numbers("") == ()

"""Options in a spec: names and values as my.cnf has them."""

from __future__ import annotations

import pytest

from pytest_dbcluster.option_texts import normal_option, option_text


@pytest.mark.parametrize(
    ("value", "text"), [(True, "ON"), (False, "OFF"), (1, "1"), (0.5, "0.5"), ("80 %", "80 %"), ("", "")]
)
def test_values_are_written_as_my_cnf_has_them(value, text):
    """Truth becomes ON and OFF, everything else its text."""
    assert option_text(value) == text


@pytest.mark.parametrize("name", ["--innodb-io-capacity", " INNODB_IO_CAPACITY ", "innodb_io_capacity"])
def test_names_are_written_with_underscores(name):
    """However they are spelt."""
    assert normal_option(name) == "innodb_io_capacity"

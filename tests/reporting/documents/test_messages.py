"""Messages that are sent are read back as the same values."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.documents import messages


def test_a_message_comes_back_as_it_was():
    """A message is decoded to the same value; other bytes raise ConfigError."""
    for said in (messages.Message("line", "a\nb", "red"), messages.Message("claim", directory="/tmp/gw0", line=3)):
        assert messages.decode(messages.encode(said)) == said
    with pytest.raises(ConfigError, match="a message of a worker"):
        messages.decode(b"what is this")

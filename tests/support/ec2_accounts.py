"""Accounts of the stand-in for EC2. Importing it takes a second, so only tests that need one do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from tests.support.ec2_stand_in import Ec2StandIn


@contextlib.contextmanager
def stand_in(*, hosts: bool = False) -> Iterator[Ec2StandIn]:
    """An account that is empty. hosts: whether its instances are machines; else they are names."""
    from tests.support.ec2_stand_in import Ec2StandIn  # large: only for tests that need it

    with Ec2StandIn(hosts=hosts) as made:
        yield made


@contextlib.contextmanager
def in_environment(account: Ec2StandIn) -> Iterator[None]:
    """Let boto3 in this process find the account."""
    with mock.patch.dict(os.environ, account.environment):
        os.environ.pop("AWS_PROFILE", None)
        yield

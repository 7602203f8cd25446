"""What moto has of instance types: the answers of AWS, as moto recorded them."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def all_types() -> dict[str, dict[str, Any]]:
    """Every type that moto knows: name -> its entry in the answer of ``DescribeInstanceTypes``."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # large: only for tests that need it

    return dict(INSTANCE_TYPES)


def described(name: str) -> dict[str, Any]:
    """The entry of one type."""
    return all_types()[name]

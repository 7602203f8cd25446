"""Loss, jitter and rate of a link as set in the kernel: read from ``tc``, and compared with the request.

We do not measure them, because a busy machine loses and delays packets too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.network import KernelSettings, LinkShape, Pair, setting

SHOW = ("-s", "-j", "qdisc", "show")  # arguments of tc
SHARE = 1e-4  # accepted relative error of a value: tc prints six digits
# The smallest steps of the kernel's shares, of our microseconds each way, and of the kernel's bytes.
STEPS = {"loss": 1e-9, "jitter": 2e-6, "rate": 8.0}

Ways = Mapping[tuple[str, str], KernelSettings]  # by interface and queue, or by source and target end


def read(text: str) -> dict[tuple[str, str], KernelSettings]:
    """The settings of the queues that have passed packets, by interface and parent.

    text: the output of ``tc`` for ``SHOW``. Raises ProvisionError for a text of another form.
    """
    try:
        return {
            (queue["dev"], queue["parent"]): _settings(queue["options"])
            for queue in json.loads(text)
            if queue["kind"] == "netem" and queue["packets"]
        }
    except (LookupError, TypeError, ValueError) as error:
        raise ProvisionError(
            f"tc {' '.join(SHOW)} did not print queues as iproute2 5.3 and newer do ({error!r}): {text[:300]!r}"
        ) from None


def _settings(options: Mapping[str, Any]) -> KernelSettings:
    """The settings in the options of one queue; tc omits groups of options that are not set."""
    rate = options["rate"]["rate"] * 8.0 if "rate" in options else None
    jitter = options["delay"]["jitter"] * 2 if "delay" in options else 0.0  # we set half of it each way
    return KernelSettings(options["loss-random"]["loss"] if "loss-random" in options else 0.0, jitter, rate)


def wrong(pair: Pair, asked: LinkShape, ways: Ways) -> str:
    """How the kernel's settings of a link differ from the request, as a clause; empty if they are equal.

    ways: by source and target end of the packets.
    """
    for one, other in (pair, pair[::-1]):
        if (found := ways.get((one, other))) is None:
            return f"packets from {one} to {other} pass no queue of the kernel"
        for name, value in vars(found).items():
            if not _same(name, getattr(asked, name) or 0.0, value or 0.0):
                texts = setting(name, getattr(asked, name)), setting(name, value)
                return f"from {one} to {other} {name} {texts[0]} was asked, and the kernel has {texts[1]} set"
    return ""


def _same(name: str, asked: float, found: float) -> bool:
    return bool(asked) == bool(found) and math.isclose(asked, found, rel_tol=SHARE, abs_tol=STEPS[name])

"""Loss, jitter and rate of a link as the kernel has them set: read from ``tc``, and compared with what was asked.

They are not measured: a busy machine loses and delays packets too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.network import KernelSettings, LinkShape, Pair, setting

SHOW = ("-s", "-j", "qdisc", "show")  # arguments of tc
SHARE = 1e-4  # by which a value may be off: tc prints six digits
# The smallest steps: of the kernel's share, of the whole microseconds each way that we set, of the kernel's bytes.
STEPS = {"loss": 1e-9, "jitter": 2e-6, "rate": 8.0}

Ways = Mapping[tuple[str, str], KernelSettings]  # by two names: of an interface and its queue, or from and to an end


def read(text: str) -> dict[tuple[str, str], KernelSettings]:
    """The settings of the queues through which packets have gone, by interface and parent.

    text: what ``tc`` prints for ``SHOW``. Raises ProvisionError for a text of another form.
    """
    try:
        return {
            (queue["dev"], queue["parent"]): _settings(queue["options"])
            for queue in json.loads(text)
            if queue["kind"] == "netem" and queue["packets"]
        }
    except (LookupError, TypeError, ValueError) as error:
        raise ProvisionError(
            f"tc {' '.join(SHOW)} did not print queues as iproute2 does from 5.3 on ({error!r}): {text[:300]!r}"
        ) from None


def _settings(options: Mapping[str, Any]) -> KernelSettings:
    """What the options of one queue say; tc prints no group of options that is not set."""
    rate = options["rate"]["rate"] * 8.0 if "rate" in options else None
    jitter = options["delay"]["jitter"] * 2 if "delay" in options else 0.0  # half of it is set each way
    return KernelSettings(options["loss-random"]["loss"] if "loss-random" in options else 0.0, jitter, rate)


def wrong(pair: Pair, asked: LinkShape, ways: Ways) -> str:
    """Why the kernel's settings of a link are not what was asked, as a clause; empty if they are.

    ways: by the ends from which and to which packets go.
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

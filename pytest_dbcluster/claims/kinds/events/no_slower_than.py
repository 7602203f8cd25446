"""``no_slower_than`` of events: the speed after the event, compared with that of another variant."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import Claim, Kind, register
from pytest_dbcluster.claims.kinds.events.shorter import Shorter


class NoSlowerAfter(Shorter):
    """After the event the candidate is slower than the baseline by less than the fraction ``by`` of its usual rate.

    The baseline is usually the control ``Nothing()``, because tables grow without an event, too. The speed after the
    event is ``speed_after``, a percentage of the rate before it. Judged as ``shorter``, with an error of at most .0005
    for any noise. Raises ConfigError unless 0 < by < 1.
    """

    name = "event_no_slower_than"
    method = "no_slower_than"
    option = "by"
    below = 1.0
    no_margin = False

    def bounds(self, margin: float) -> tuple[float, float]:
        """The baseline's percentage less the candidate's is below the margin."""
        return -math.inf, 100 * margin

    @property
    def has_history(self) -> bool:
        """Not: a difference near 0 has no level."""
        return False

    def hint(self, margin: float) -> str:
        """What a margin of 1 or more means."""
        return Kind.hint(self, margin)

    def bound_text(self, bound: float) -> str:
        """``10 %``."""
        return f"{bound:.6g} %"

    def figure_text(self, value: float, limits: Sequence[float]) -> str:
        """``6.20 %``."""
        return formatting.NOTHING if math.isnan(value) else f"{super().figure_text(value, limits)[:-2]} %"

    def interval_text(self, low: float, high: float, limits: Sequence[float]) -> str:
        """``-1.20 .. 14.50 %``."""
        shown = super().interval_text(low, high, limits)
        return shown if shown == formatting.NO_INTERVAL else f"{shown[:-2]} %"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``kill.no_slower_than(none, by=0.1)``."""
        margin = [f"by={claim.margin:g}"] if claim.margin else []
        return f"{names[0]}.no_slower_than({', '.join([names[1], *margin])})"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``after the event kill is less than 10 % slower than none``."""
        less = f"{'' if true else 'not '}less than {self.bound_text(100 * claim.margin)} slower"
        return f"after the event {names[0]} is {less} than {names[1]}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``after the event kill is slower than none by 6.20 % of the usual rate``."""
        return f"after the event {names[0]} is slower than {names[1]} by {ratio} of the usual rate"


event_no_slower_than = register(NoSlowerAfter())

"""``below``: a duration of an event is below a bound, for one variant."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Verdict, register
from pytest_dbcluster.claims.repetitions import order_statistics
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind
from pytest_dbcluster.claims.repetitions.samples import Repetitions


class Below(RepetitionKind):
    """The duration is below so many seconds in half of the events, or in another ``share`` of them.

    Holds when the interval of the quantile lies below the bound, and fails when it lies above. The interval comes from
    order statistics of independent repetitions, so it holds for any distribution. With ``times=11`` the verdict is
    wrong with a chance of at most .0005. With 6 to 10 repetitions this chance is .025, as of a 95 % interval.
    """

    name = "below"
    option = "seconds"

    def bounds(self, margin: float) -> tuple[float, float]:
        """Below the bound, in seconds."""
        return -math.inf, margin

    def judge(self, claim: Claim, samples: Sequence[Repetitions], times: int, alpha: float) -> Verdict | None:
        """The verdict after all repetitions."""
        [own] = samples
        level = order_statistics.level_of(times, claim.share, alpha)
        if len(own) < times or level is None:
            return None
        ends = order_statistics.interval(own, claim.share, level)
        return self.verdict(claim, samples, order_statistics.quantile(own, claim.share), ends, level)

    def refuses(self, claim: Claim, times: int, alpha: float) -> str:
        """That fewer repetitions than those of a 95 % interval decide nothing."""
        if order_statistics.level_of(times, claim.share, alpha) is not None:
            return ""
        least, strict = (
            order_statistics.repetitions_needed(claim.share, level) for level in (order_statistics.USUAL_LEVEL, alpha)
        )
        of = "" if claim.share == 0.5 else f" with share={claim.share:g}"
        return (
            f"times={times} decides nothing{of}: a 95 % interval needs times={least} or more, and an error of "
            f"{alpha:g} times={strict}"
        )

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``galera3.below("stall", 8)``."""
        share = [] if claim.share == 0.5 else [f"share={claim.share:g}"]
        arguments = [f'"{metric}"', *([f"{claim.margin:g}"] if claim.margin else []), *share]
        return f"{names[0]}.{self.name}({', '.join(arguments)})"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``stall of galera3 is below 8 s in half of the events``."""
        often = "half" if claim.share == 0.5 else f"{100 * claim.share:g} %"
        is_ = "is" if true else "is not"
        return f"{metric} of {names[0]} {is_} below {self.bound_text(claim.margin)} in {often} of the events"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``stall of galera3 is 6.12 s``."""
        return f"{metric} of {names[0]} is {ratio}"


below = register(Below())

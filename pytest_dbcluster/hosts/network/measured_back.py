"""MeasuredBack: the delays of one measurement, measured before its first round and after its last."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster.hosts.network.path import MeasuredLink, NetworkPath
from pytest_dbcluster.network import Delay, NetworkNeeds


class MeasuredBack:
    """Measures the delays of each path that the rounds of a measurement use."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[NetworkPath, NetworkNeeds]] = {}
        self._before: dict[tuple[NetworkPath, NetworkNeeds], list[MeasuredLink]] = {}
        self._after: dict[tuple[NetworkPath, NetworkNeeds], list[MeasuredLink]] = {}

    def before(self, name: str, path: NetworkPath | None, needs: NetworkNeeds | None) -> None:
        """Measure a path before the first round of a variant. Raises ProvisionError.

        name: of the variant. It does not measure the same needs on the same path again.
        """
        if path and needs:
            self._first.setdefault(name, (path, needs))
            if (path, needs) not in self._before:
                self._before[path, needs] = path.measure(needs)

    def after(self, path: NetworkPath | None) -> None:
        """Repeat all earlier measurements of a path. Raises ProvisionError."""
        for of, needs in [key for key in self._before if key[0] is path]:
            self._after[of, needs] = of.measure(needs)

    def of(self, name: str) -> list[Delay]:
        """The delays of a variant, on the first path of its rounds; empty if they were not measured."""
        key = self._first.get(name)
        if key not in self._before:
            return []
        after: Sequence[MeasuredLink | None] = self._after.get(key) or [None] * len(self._before[key])
        return [
            Delay(
                first.pair,
                first.asked,
                first.measured,
                last.measured if last else None,
                first.kernel_settings,
            )
            for first, last in zip(self._before[key], after, strict=True)
        ]


def line(name: str, needs: NetworkNeeds | None, delays: Sequence[Delay]) -> str:
    """The line about the network of a variant in a message; empty for a variant without one."""
    if needs is None:
        return ""
    shown = [delay for delay in delays if delay.asked or delay.kernel_settings] or delays[:1]
    measured = "; ".join(map(str, shown)) or "no link was measured"
    return f"network of {name}: {needs}; {measured}"

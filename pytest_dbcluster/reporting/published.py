"""Published measurements: the figures of a TOML file, and the ratio of two of its columns."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.testbed.variants import Variant

DIRECTORY = Path("fixtures") / "published"
BASELINE = "default"
Figure = str | tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Published:
    """One published comparison: seconds by column and mode, smaller is better; or figures that stand alone.

    ``columns`` says which column a variant is, where the names differ. ``figures`` has the published ratio candidate /
    baseline of a metric or counter, where the file gives that and no seconds.
    """

    title: str
    cells: Mapping[str, Mapping[str, tuple[float, ...]]]
    columns: Mapping[str, str]
    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, item: Any, root: Path) -> Published | None:
        """The measurement that a test's ``published`` mark names; None without the mark. Raises ConfigError."""
        mark = item.get_closest_marker("published")
        if not mark:
            return None
        named = {option: mark.kwargs.get(option, {}) for option in ("columns", "figures")}
        return cls.read(root, *mark.args, **named)

    @classmethod
    def read(
        cls, root: Path, name: str, *, columns: Mapping[str, str], figures: Mapping[str, Figure] = MappingProxyType({})
    ) -> Published:
        """The file ``fixtures/published/NAME.toml``. Raises ConfigError that lists the files there are.

        A figure is a dotted place in the file: of a gain (.5 is half as fast again) or of a ratio; or two places,
        whose quotient it is.
        """
        path = root / DIRECTORY / f"{name}.toml"
        if not path.exists():
            known = sorted(entry.stem for entry in path.parent.glob("*.toml"))
            raise registry.unknown("published measurement", name, known)
        said = tomllib.loads(path.read_text())
        if "columns" not in said and not figures:
            raise ConfigError(f"published measurement {name!r} has no [columns.NAME] with seconds for each mode")
        cells = {
            column: {key: cell for key, value in rows.items() if (cell := _cell(value))}
            for column, rows in said.get("columns", {}).items()
        }
        return cls(said["title"], cells, columns, {what: _figure(said, one, name) for what, one in figures.items()})

    def ratio(self, candidate: Variant, baseline: Variant, metric: str, mode: str) -> float | None:
        """Published speed of candidate / baseline in the load's mode; None where a cell is missing.

        ``metric`` is what the claim is about, ``mode`` the load's. A figure of the metric comes first: of a counter
        it is the counter's ratio.
        """
        if self.figures or metric != "throughput":
            return self.figures.get(metric)
        fast, slow = self.seconds(candidate, mode), self.seconds(baseline, mode)
        return slow[0] / fast[0] if fast and slow else None

    def seconds(self, variant: Variant, mode: str) -> tuple[float, ...]:
        """Published seconds of a variant in a mode: average, least, most; empty where there is no such cell."""
        name = variant.spec.short_name
        column = self.columns.get(name, name)
        if column not in self.cells and not variant.options:
            column = BASELINE
        if name in self.columns and column not in self.cells:
            raise registry.unknown(f"published column of {name}", column, list(self.cells))
        return self.cells.get(column, {}).get(mode, ())


def _figure(said: Mapping[str, Any], place: Figure, file: str) -> float:
    """The ratio at a place of the file. Raises ConfigError for a place that holds no number."""
    if isinstance(place, str):
        return _ratio(said, place, file)
    above, below = place
    return _ratio(said, above, file) / _ratio(said, below, file)


def _ratio(said: Mapping[str, Any], place: str, file: str) -> float:
    """The number at a place; a gain as the ratio that it is of, without which two of them have no quotient."""
    found = _number(said, place, file)
    return 1 + found if "gain" in place else found


def _number(said: Mapping[str, Any], place: str, file: str) -> float:
    found: Any = said
    for key in place.split("."):
        if not isinstance(found, Mapping) or key not in found:
            known = ", ".join(found) if isinstance(found, Mapping) else "a value"
            raise ConfigError(f"published measurement {file!r} has no {place!r}: at {key!r} there is {known}")
        found = found[key]
    if isinstance(found, bool) or not isinstance(found, int | float) or not found:
        raise ConfigError(f"published measurement {file!r}: {place!r} is {found!r} and no number above or below 0")
    return float(found)


def _cell(value: object) -> tuple[float, ...]:
    """Seconds as a cell has them: an average alone, or with the least and the most; empty for anything else."""
    if isinstance(value, float):
        return (value,)
    return tuple(map(float, value)) if isinstance(value, list) else ()

"""Published measurements: the figures of a TOML file, and the ratio of two of its columns."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.answer import Answer
    from pytest_dbcluster.variants import Variant

DIRECTORY = Path("fixtures") / "published"
BASELINE = "default"


@dataclasses.dataclass(frozen=True)
class Published:
    """One published comparison: seconds by column and mode, smaller is better.

    ``columns`` says which column a variant is, where the names differ.
    """

    title: str
    cells: Mapping[str, Mapping[str, tuple[float, ...]]]
    columns: Mapping[str, str]

    @classmethod
    def of(cls, item: Any, root: Path) -> Published | None:
        """The measurement that a test's ``published`` mark names; None without the mark. Raises ConfigError."""
        mark = item.get_closest_marker("published")
        return cls.read(root, *mark.args, columns=mark.kwargs.get("columns", {})) if mark else None

    @classmethod
    def read(cls, root: Path, name: str, *, columns: Mapping[str, str]) -> Published:
        """The file ``fixtures/published/NAME.toml``. Raises ConfigError that lists the files there are."""
        path = root / DIRECTORY / f"{name}.toml"
        if not path.exists():
            known = sorted(entry.stem for entry in path.parent.glob("*.toml"))
            raise registry.unknown("published measurement", name, known)
        said = tomllib.loads(path.read_text())
        if "columns" not in said:
            raise ConfigError(f"published measurement {name!r} has no [columns.NAME] with seconds for each mode")
        cells = {
            column: {key: cell for key, value in rows.items() if (cell := _cell(value))}
            for column, rows in said["columns"].items()
        }
        return cls(said["title"], cells, columns)

    def ratio(self, candidate: Variant, baseline: Variant, answer: Answer) -> float | None:
        """Published speed of candidate / baseline in the load's mode; None where a cell is missing."""
        mode = getattr(answer.measurement.laboratory, "mode", "")
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


def _cell(value: object) -> tuple[float, ...]:
    """Seconds as a cell has them: an average alone, or with the least and the most; empty for anything else."""
    if isinstance(value, float):
        return (value,)
    return tuple(map(float, value)) if isinstance(value, list) else ()

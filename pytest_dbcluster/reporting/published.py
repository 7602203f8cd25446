"""Published measurements, read from TOML files in ``fixtures/published``, and the ratio of two of their columns."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.measuring.evidence import ResolvedSpec

DIRECTORY = Path("fixtures") / "published"
BASELINE = "default"
MARKED = 'published("FILE", table=N, columns={name: column}, figures={metric: key}, sentence=N)'
Figure = str | tuple[str, str]  # one or two dotted keys of the file


@dataclasses.dataclass(frozen=True)
class Published:
    """One published comparison: either seconds by column and mode, or ratios."""

    title: str
    """The title in the file."""

    cells: Mapping[str, Mapping[str, tuple[float, ...]]]
    """By column and mode, the seconds: an average, or average, minimum and maximum."""

    columns: Mapping[str, str]
    """By variant, its column if the names differ."""

    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By metric or counter, the published ratio candidate / baseline.

    A file has ratios or gains if it has no seconds.
    """

    sentence: str = ""
    """The finding in words; empty for none."""

    @property
    def lines(self) -> list[str]:
        """The line of a message with the sentence; none without one."""
        return [f'published: "{self.sentence}" ({self.title})'] if self.sentence else []

    @classmethod
    def of(cls, item: Any, root: Path) -> Published | None:
        """The measurement that a test's ``published`` mark names; None without the mark.

        Raises ConfigError as ``read`` does.
        """
        mark = item.get_closest_marker("published")
        if not mark:
            return None
        named = {option: mark.kwargs.get(option, {}) for option in ("columns", "figures")}
        known = (*named, "table", "sentence")
        if len(mark.args) != 1 or not all(isinstance(given, Mapping) for given in named.values()):
            raise ConfigError(f"the mark of {item.nodeid} is written {MARKED}")
        if unknown := [name for name in mark.kwargs if name not in known]:
            raise registry.unknown("argument of the mark published", unknown[0], known)
        return cls.read(root, *mark.args, **named, sentence=mark.kwargs.get("sentence"))

    @classmethod
    def read(
        cls,
        root: Path,
        name: str,
        *,
        columns: Mapping[str, str],
        figures: Mapping[str, Figure] = MappingProxyType({}),
        sentence: int | None = None,
    ) -> Published:
        """The measurement of the file ``fixtures/published/NAME.toml``.

        A figure is a dotted key of the file. Its value is a ratio, or a gain if the key contains ``gain``: a gain of .5
        is the ratio 1.5. Two keys give the quotient of their ratios. ``sentence`` is the number of a text of
        [findings], from 0. Raises ConfigError for an unknown file, with the known ones, and for a file without seconds.
        It raises it too for a key without a number, and a sentence that the file does not have.
        """
        known = sorted(entry.stem for entry in (root / DIRECTORY).glob("*.toml"))
        if name not in known:  # also a name that leads to another directory
            raise registry.unknown("published measurement", name, known)
        path = root / DIRECTORY / f"{name}.toml"
        document = tomllib.loads(path.read_text())
        if "columns" not in document and not figures and sentence is None:
            raise ConfigError(f"published measurement {name!r} has no [columns.NAME] with seconds for each mode")
        cells = {
            column: {key: cell for key, value in rows.items() if (cell := _cell(value))}
            for column, rows in document.get("columns", {}).items()
        }
        ratios = {metric: _figure(document, keys, name) for metric, keys in figures.items()}
        return cls(document["title"], cells, columns, ratios, _sentence(document, sentence, name))

    def ratio(self, candidate: ResolvedSpec, baseline: ResolvedSpec, metric: str, mode: str) -> float | None:
        """The published ratio candidate / baseline of speed; None if no ratio is published.

        ``metric`` is the metric of the claim, ``mode`` the mode of the load. ``figures`` take precedence over seconds;
        for a counter they are the ratio of the counter.
        """
        if self.figures or metric != "throughput":
            return self.figures.get(metric)
        fast, slow = self.seconds(candidate, mode), self.seconds(baseline, mode)
        return slow[0] / fast[0] if fast and slow else None

    def seconds(self, variant: ResolvedSpec, mode: str) -> tuple[float, ...]:
        """Published seconds of a variant in a mode: average, minimum, maximum; empty if none are published.

        Raises ConfigError if the test's mark names a column that the file does not have.
        """
        name = variant.name
        column = self.columns.get(name, name)
        if column not in self.cells and not variant.options:
            column = BASELINE
        if name in self.columns and column not in self.cells:
            raise registry.unknown(f"published column of {name}", column, list(self.cells))
        return self.cells.get(column, {}).get(mode, ())


def _sentence(document: Mapping[str, Any], number: int | None, file: str) -> str:
    """The text of [findings] with this number, from 0; empty for None. Raises ConfigError for a wrong number."""
    if number is None:
        return ""
    texts = document.get("findings", {}).get("text", [])
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(texts):
        raise ConfigError(
            f"published measurement {file!r} has {quantity(len(texts), 'sentence')} in [findings] text, and "
            f"sentence={number!r} is not one of them; they are numbered from 0"
        )
    return str(texts[number])


def _figure(document: Mapping[str, Any], keys: Figure, file: str) -> float:
    """The ratio at a key, or the quotient of the ratios at two keys. Raises ConfigError for a key without a number."""
    if isinstance(keys, str):
        return _ratio(document, keys, file)
    above, below = keys
    return _ratio(document, above, file) / _ratio(document, below, file)


def _ratio(document: Mapping[str, Any], key: str, file: str) -> float:
    """The number at a dotted key; a gain is converted to a ratio, because a quotient of gains means nothing."""
    number = _number(document, key, file)
    return 1 + number if "gain" in key else number


def _number(document: Mapping[str, Any], key: str, file: str) -> float:
    """The number at a dotted key. Raises ConfigError for a missing key, and for anything but a number other than 0."""
    value: Any = document
    for name in key.split("."):
        if not isinstance(value, Mapping) or name not in value:
            known = ", ".join(value) if isinstance(value, Mapping) else "a value"
            raise ConfigError(f"published measurement {file!r} has no {key!r}: at {name!r} there is {known}")
        value = value[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        raise ConfigError(f"published measurement {file!r}: {key!r} is {value!r}; it must be a number other than 0")
    return float(value)


def _cell(value: object) -> tuple[float, ...]:
    """The seconds of a cell: an average, or average, minimum and maximum; empty for any other value."""
    if isinstance(value, float):
        return (value,)
    return tuple(map(float, value)) if isinstance(value, list) else ()

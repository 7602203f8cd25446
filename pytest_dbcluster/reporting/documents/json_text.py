"""JSON text: a typed document as JSON, and JSON as the same document.

Every document has a format number. JSON has no infinity: a number that is not finite is the string "inf", "-inf" or
"nan".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from pytest_dbcluster.errors import ConfigError

Document = TypeVar("Document")


@dataclasses.dataclass(frozen=True)
class Format:
    """The format that this version reads and writes."""

    number: int
    """Its number. Raise it when a name is removed or changes its meaning."""

    older: Mapping[int, str]
    """By number, what an older format lacks."""

    remove: str = "remove the line"
    """The advice about text that pytest-dbcluster did not write."""

    again: str = "measure again"
    """The advice about damaged text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileLine:
    """What each document begins with."""

    format: int
    """The number of its format."""


def read(text: bytes, kind: type[Document], where: str, known: Format) -> Document:
    """The document in this JSON text. Raises ConfigError, which begins with ``where``, if it is not such a document.

    The message distinguishes incomplete text, no JSON, JSON of another program, a newer format, an older format, and
    wrong fields.
    """
    return document_of(decode(text, where, known), kind, where, known)


def document_of(content: Any, kind: type[Document], where: str, known: Format) -> Document:
    """The JSON value of a text as ``read`` returns it, for a caller that has decoded it. Raises ConfigError."""
    written = content.get("format") if isinstance(content, dict) else None
    if type(written) is not int:
        raise ConfigError(f"{where}: it has no format number, so pytest-dbcluster did not write it; {known.remove}")
    if written > known.number:
        raise ConfigError(
            f"{where}: it has format {written}, and this version reads format {known.number}; update pytest-dbcluster "
            "(pip install --upgrade pytest-dbcluster)"
        )
    if written < known.number:
        why = known.older.get(written, "no version has written it")
        raise ConfigError(
            f"{where}: it has format {written}, and this version reads format {known.number}: {why}; {known.again}"
        )
    return convert(content, kind, where, known)


def decode(text: bytes, where: str, known: Format) -> Any:
    """The value of this JSON. Raises ConfigError, which begins with ``where``, for other text."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = "it is not JSON" if text.endswith(b"\n") else "it is incomplete: the run ended while writing it"
        raise ConfigError(f"{where}: {problem} ({error}); {known.remove}, or {known.again}") from error


def convert(content: Any, kind: type[Document], where: str, known: Format) -> Document:
    """The JSON value as a document. Raises ConfigError, which begins with ``where``, if fields are wrong."""
    import msgspec

    try:
        return msgspec.convert(content, kind, strict=False)  # not strict: "inf" is a number
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}; it was changed by hand or copied in part; {known.again}") from error


def encode(document: object, more: Mapping[str, float] | None = None) -> bytes:
    """The document as a line of JSON, with the names and numbers of ``more`` in the same object."""
    import msgspec

    plain = msgspec.to_builtins(document, str_keys=True, enc_hook=_dictionary)
    line: bytes = msgspec.json.encode(_finite({**(more or {}), **plain}))
    return line + b"\n"


def _dictionary(value: object) -> dict[Any, Any]:
    """The names and values of a mapping that is no dictionary, such as the figures of a round."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def json_value(value: object) -> int | float | str | bool | None:
    """The value if JSON has it: a number, text, true, false or null; else its text."""
    return value if isinstance(value, int | float | str | None) else str(value)


def _finite(value: Any) -> Any:
    """The value with every number that is not finite as text: "inf", "-inf" or "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value

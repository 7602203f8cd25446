"""Write the published JSON Schemas of ``run.json`` and of the lines of ``claims.jsonl`` into the package.

python scripts/json_schemas.py            writes the files
python scripts/json_schemas.py --check    exits with 1 when a file is not what the types say
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import sys
import typing
from pathlib import Path
from typing import Any

import msgspec

from pytest_dbcluster.reporting.documents import record_documents, run_document

ROOT = Path(__file__).resolve().parents[1]
DIRECTORY = ROOT / "pytest_dbcluster" / "reporting" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# File -> title, type, format.
PUBLISHED: dict[str, tuple[str, type, int]] = {
    "run.schema.json": ("run.json of pytest-dbcluster", run_document.RunDocument, run_document.FORMAT),
    "claims.schema.json": (
        "a line of claims.jsonl of pytest-dbcluster",
        record_documents.ClaimDocument,
        record_documents.FORMAT,
    ),
}
NOT_FINITE = ["inf", "-inf", "nan"]  # JSON has no such numbers, so they are texts


def texts() -> dict[str, str]:
    """The text of each schema by file name."""
    made = {}
    for name, (title, kind, number) in PUBLISHED.items():
        document = _with_texts(msgspec.json.schema(kind))
        documented = {one.__name__: _field_texts(one) for one in _dataclasses(kind)}
        for definition, content in document["$defs"].items():
            for field, text in documented.get(definition, {}).items():
                content["properties"][field]["description"] = text
        document["$defs"][kind.__name__]["properties"]["format"] = {"const": number}
        made[name] = json.dumps({"$schema": DRAFT, "title": title, **document}, indent=1) + "\n"
    return made


def _dataclasses(kind: Any) -> set[type]:
    """The dataclasses of which values of this type are made."""
    found: set[type] = set()
    left = [kind]
    while left:
        one = left.pop()
        if dataclasses.is_dataclass(one) and isinstance(one, type) and one not in found:
            found.add(one)
            left += typing.get_type_hints(one).values()
        left += typing.get_args(one)
    return found


def _field_texts(kind: type) -> dict[str, str]:
    """The docstring below each field of a dataclass."""
    texts = {}
    for base in filter(dataclasses.is_dataclass, reversed(kind.__mro__)):
        [definition] = ast.parse(inspect.cleandoc(inspect.getsource(base))).body
        for field, text in itertools.pairwise(typing.cast("ast.ClassDef", definition).body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                texts[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return texts


def _with_texts(value: Any) -> Any:
    """The schema with the texts of numbers that are not finite, wherever a number may be."""
    if isinstance(value, list):
        return [_with_texts(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value == {"type": "number"}:
        return {"anyOf": [value, {"enum": NOT_FINITE}]}
    return {
        name: inspect.cleandoc(item) if name == "description" and isinstance(item, str) else _with_texts(item)
        for name, item in value.items()
    }


def main(arguments: list[str]) -> int:
    """Write or check the files; returns the exit status."""
    wrong = [name for name, text in texts().items() if not _is(DIRECTORY / name, text)]
    if "--check" in arguments:
        print("\n".join(f"{name} is out of date: run python scripts/json_schemas.py" for name in wrong), end="")
        return int(bool(wrong))
    DIRECTORY.mkdir(exist_ok=True)
    for name in wrong:
        (DIRECTORY / name).write_text(texts()[name])
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Docstrings of the package: sentences that a reader in a hurry understands at once."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import pytest_dbcluster

PACKAGE = Path(pytest_dbcluster.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
WORDS = 20  # of a sentence; code in backquotes counts as one word
ITEM = re.compile(r"^\s*(- |\* |\d+\. )")
TABLE = re.compile(r"\S {3,}\S")  # a line with columns is no prose


def docstrings(tree):
    """The docstrings of a module, of its classes and functions, and of the fields of its classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            texts = [one.value for one in node.body if isinstance(one, ast.Expr)]
            yield from (inspect.cleandoc(one.value) for one in texts if isinstance(getattr(one, "value", None), str))


def sentences(docstring):
    """The sentences of its prose: an item of a list begins one, as a paragraph does."""
    prose = "\n".join(line for line in docstring.splitlines() if not TABLE.search(line))
    lines = re.sub(r"(`+)[^`]+\1", "code", prose).splitlines()
    lines = ["\n" + line.strip() if ITEM.match(line) else line for line in lines]
    for paragraph in re.split(r"\n\s*\n|\n(?=\n)", "\n".join(lines)):
        yield from re.split(r"(?<=[.:?!])\s+", " ".join(ITEM.sub("", paragraph).split()))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_sentences_of_docstrings_are_short(path):
    """A long one is two sentences, or a list."""
    found = [one for text in docstrings(ast.parse(path.read_text())) for one in sentences(text)]

    assert [one for one in found if len(one.split()) > WORDS] == []


def test_a_long_sentence_is_found():
    """In a paragraph, in an item of a list, and in the text below a field; code and tables do not count."""
    long = " ".join(["word"] * (WORDS + 1))
    module = f'class A:\n    """Short.\n\n    - {long}.\n    """\n\n    b = 1\n    """{long}: c."""\n'
    found = [one for text in docstrings(ast.parse(module)) for one in sentences(text) if len(one.split()) > WORDS]

    assert found == [f"{long}.", f"{long}:"]
    assert max(len(one.split()) for one in sentences(f"Name    {long}\n\nA ``{long}`` is one word.")) == 5

"""The repetitions of events that a test will ask for, as its source shows before it runs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from pytest_dbcluster.claims.repetitions.order_statistics import ALONE_TIMES
from pytest_dbcluster.claims.repetitions.permutation import PER_BLOCK

METHOD = "event"  # of the fixture ``measure``
FIXTURE = "measure"


def repetitions(item: Any) -> int:
    """The number of repetitions in the calls of ``measure.event`` in a test's function; 0 without such a call.

    A call whose ``times=`` is no number in the source counts with the default. The names on the left of the
    assignment show how many variants it has.
    """
    function = inspect.unwrap(getattr(item, "function", len))
    if METHOD not in getattr(getattr(function, "__code__", None), "co_names", ()):
        return 0
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return 0
    return sum(_of_call(call, variants) for call, variants in _calls(tree))


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, int]]:
    """The calls of ``measure.event``, each with its number of variants."""
    variants = {
        node.value: len(target.elts)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Tuple)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{FIXTURE}.{METHOD}":
            yield node, variants.get(node, 1)


def _of_call(call: ast.Call, variants: int) -> int:
    given = [word.value.value for word in call.keywords if word.arg == "times" and isinstance(word.value, ast.Constant)]
    times = given[0] if given and isinstance(given[0], int) else PER_BLOCK if variants > 1 else ALONE_TIMES
    return times * variants

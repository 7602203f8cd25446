"""What the code of a measuring test shows before it runs: the clusters and workloads of its ``measure(...)`` calls.

Nothing of the test is executed. Names are looked up among its parameters and in its module. An expression that only
running the test could evaluate, such as a call of the test's own function, stays ``Unseen``: equal text, with the
values of its parameters, means the same cluster.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_dbcluster.spec import ClusterSpec

FIXTURE = "measure"
OF_SPEC = ("named", "on_release", "on_storage", "with_cnf", "with_needs", "with_options", "with_parity", "with_storage")
CLAIMS = frozenset(
    {"beats", "fades", "lower", "no_more_stalls_than", "no_slower_than", "ordered", "same_as", "scales"}
)  # the methods and functions that make a claim
Margin = tuple[str, float, str]
MARGINS = ("by", "within", "at_least", "step")  # their arguments with a margin


@dataclasses.dataclass(frozen=True)
class Unseen:
    """The value of an expression that is not known before the test runs: its text, with the values of parameters."""

    text: str


@dataclasses.dataclass(frozen=True)
class Call:
    """One ``measure(...)`` or ``measure.sweep(...)`` of a test.

    workloads: the workload, or those of a mapping; each a workload or ``Unseen``. on: the clusters, each a ClusterSpec
    or ``Unseen``. instances: as the call gives them, None where it does not. sweep: whether it is a sweep.
    """

    workloads: tuple[object, ...]
    on: tuple[object, ...]
    instances: int | None = None
    sweep: bool = False


@dataclasses.dataclass(frozen=True)
class Code:
    """What is known of a test: its calls, in their order, and the kinds of claims that its own code makes.

    margins: the claims of its own code whose margin is written as a number: the name of the claim, the number, and the
    metric, empty for that of the workload. Of ``lower`` also those without a margin, with the counter.
    """

    calls: tuple[Call, ...] = ()
    claims: frozenset[str] = frozenset()
    margins: tuple[Margin, ...] = ()


_KNOWN = pytest.StashKey[Code]()


def code_of(item: Any) -> Code:
    """What the code of a test shows; an empty ``Code`` for a test whose source cannot be read.

    It is read once for each test of pytest: five places ask for it while tests are collected.
    """
    if not isinstance(item, pytest.Item):
        return _read(item)
    if _KNOWN not in item.stash:
        item.stash[_KNOWN] = _read(item)
    return item.stash[_KNOWN]


def _read(item: Any) -> Code:
    function = inspect.unwrap(getattr(item, "function", None) or (lambda: None))
    source = _parsed(getattr(function, "__code__", None))
    if source is None:
        return Code()
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    names = _Names({**getattr(function, "__globals__", {}), **params}, frozenset(params), source.assigned)
    margins = tuple(margin for node in source.calls for margin in _margins(node, names))
    return Code(tuple(_call(node, names) for node in source.calls if _measures(node)), source.claims, margins)


@dataclasses.dataclass(frozen=True)
class _Source:
    """What the source of a function shows, whatever its parameters are.

    calls: in the order of the text. claims: the kinds that it names. assigned: the names that it assigns exactly once,
    with their expressions.
    """

    calls: Sequence[ast.Call]
    claims: frozenset[str]
    assigned: Mapping[str, ast.expr]


@functools.lru_cache(maxsize=256)
def _parsed(code: Any) -> _Source | None:
    try:
        changed = Path(code.co_filename).stat().st_mtime_ns
    except (AttributeError, OSError):
        return None
    tree = _functions(code.co_filename, changed).get(code.co_firstlineno)
    if tree is None:
        return None
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    used = {_name(node) for node in nodes if isinstance(node, ast.Attribute | ast.Name)}
    return _Source(calls, CLAIMS & used, _assigned(nodes))


@functools.lru_cache(maxsize=64)
def _functions(file: str, changed: int) -> Mapping[int, ast.AST]:
    """The functions of a file by their first line, decorators included; none of a file that cannot be read.

    changed: when the file was written; a file that was written again is read again.
    ``inspect.getsource`` splits the text of each function into tokens, which took a third of the time of a collection.
    """
    try:
        nodes = list(ast.walk(ast.parse(Path(file).read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return {}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {min(line.lineno for line in (*node.decorator_list, node)): node for node in functions}


def _name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def _measures(node: ast.Call) -> bool:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "sweep":
        function = function.value
    return isinstance(function, ast.Name) and function.id == FIXTURE


def _margins(node: ast.Call, names: _Names) -> Iterator[Margin]:
    """The margin of a call that makes a claim, where it and the metric are known."""
    if not isinstance(node.func, ast.Attribute | ast.Name) or (kind := _name(node.func)) not in CLAIMS:
        return
    keywords = {keyword.arg: names.value(keyword.value) for keyword in node.keywords}
    if kind == "lower":
        metric = names.value(node.args[0]) if node.args else keywords.get("counter")
        keywords.setdefault("by", 0)
    else:
        metric = keywords.get("metric") or ""
    for name, value in keywords.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in MARGINS and number and isinstance(metric, str):
            yield kind, float(value), metric


def _call(node: ast.Call, names: _Names) -> Call:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    first = keywords.get("workload") or (node.args[0] if node.args else None)
    load = names.value(first) if first is not None else Unseen("")
    workloads = tuple(load.values()) if isinstance(load, dict) else (load,)
    on = names.value(keywords["on"]) if "on" in keywords else ()
    instances = names.value(keywords["instances"]) if "instances" in keywords else None
    return Call(
        workloads,
        tuple(on) if isinstance(on, list | tuple) else (on,),
        instances if isinstance(instances, int) else None,
        sweep=isinstance(node.func, ast.Attribute),
    )


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, ast.expr]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


@dataclasses.dataclass
class _Names:
    """The values of expressions, as far as they can be known without running the test.

    known: the values of names. params: the names that are parameters. assigned: expressions of the test's own names.
    """

    known: Mapping[str, Any]
    params: frozenset[str]
    assigned: Mapping[str, ast.expr]
    depth: int = 0

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, or ``Unseen``."""
        kinds: dict[type[ast.expr], Callable[[Any], Any]] = {
            ast.Attribute: self._attribute,
            ast.Call: self._called,
            ast.Constant: lambda node: node.value,
            ast.Dict: self._dict,
            ast.List: self._list,
            ast.Name: self._named,
            ast.Subscript: self._item,
            ast.Tuple: self._list,
        }
        found = kinds[type(node)](node) if type(node) in kinds else None
        return self._unseen(node) if found is None else found

    def _unseen(self, node: ast.expr) -> Unseen:
        if not _names_in(node) & self.params:
            return Unseen(_text(node))
        return Unseen(ast.unparse(_Filled(self.known, self.params).visit(copy.deepcopy(node))))

    def _named(self, node: ast.Name) -> Any:
        if node.id in self.assigned and node.id not in self.params and self.depth < 9:
            self.depth += 1
            try:
                return self.value(self.assigned[node.id])
            finally:
                self.depth -= 1
        return self.known.get(node.id)

    def _list(self, node: ast.List | ast.Tuple) -> list[Any]:
        return list(self._elements(node.elts))

    def _elements(self, nodes: Sequence[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            value = self.value(node.value) if isinstance(node, ast.Starred) else None
            if isinstance(value, list | tuple):
                yield from value
            else:
                yield self.value(node)

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        return {number: self.value(value) for number, value in enumerate(node.values)}

    def _item(self, node: ast.Subscript) -> Any:
        holder, key = self.value(node.value), self.value(node.slice)
        if isinstance(holder, dict | list | tuple) and isinstance(key, str | int):
            try:
                return holder[key]  # type: ignore[index]
            except (LookupError, TypeError):
                return None
        return None

    def _attribute(self, node: ast.Attribute) -> Any:
        holder = self.value(node.value)
        return getattr(holder, node.attr, None) if inspect.ismodule(holder) else None

    def _called(self, node: ast.Call) -> Any:
        """The value of a call of this package alone: a spec or a workload is made, or a spec is changed."""
        function: Any = None
        if isinstance(node.func, ast.Attribute) and node.func.attr in OF_SPEC:
            holder = self.value(node.func.value)
            function = getattr(holder, node.func.attr) if isinstance(holder, ClusterSpec) else None
        else:
            named = self.value(node.func)
            function = named if _is_ours(named) else None
        given = [self.value(argument) for argument in node.args]
        more = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if function is None or None in more or any(isinstance(one, Unseen) for one in (*given, *more.values())):
            return None
        try:
            return function(*given, **{str(name): value for name, value in more.items()})
        except Exception:  # the test itself will raise it
            return None


@functools.lru_cache(maxsize=1024)
def _names_in(node: ast.expr) -> frozenset[str]:
    return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))


@functools.lru_cache(maxsize=1024)
def _text(node: ast.expr) -> str:
    return ast.unparse(node)


class _Filled(ast.NodeTransformer):
    """Writes the values of parameters in the place of their names: then equal text means an equal value."""

    def __init__(self, known: Mapping[str, Any], params: frozenset[str]) -> None:
        self._known, self._params = known, params

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """The name, or the value of a parameter as text."""
        return ast.Name(repr(self._known[node.id])) if node.id in self._params else node


def _is_ours(value: object) -> bool:
    """Whether this is a class of this package whose objects are plain values: a spec or a workload."""
    if not (isinstance(value, type) and dataclasses.is_dataclass(value)):
        return False
    from pytest_dbcluster.workloads.workload import Workload

    return value is ClusterSpec or issubclass(value, Workload)

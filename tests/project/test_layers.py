"""The shape of the code: who may import whom, what is imported only when used, and how long things may be."""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "pytest_dbcluster"
NAME = PACKAGE.name

# From the bottom up. A module imports from its own layer and from those below; a folder stands for all of its files.
LAYERS = {
    "leaves": "errors wait secrets registry cache copying ports shared_place supervisor shims ordering critical "
    "always health histogram ledger machine storage devices quantity",
    "specs": "spec",
    "hosts": "host release releases flavour vocabulary sql runs local_host local_run engine "
    "engine_socket agent container_host cgroup_tree cgroups bootstrap images worker_files",
    "nodes": "node template options parity status_port",
    "primaries": "replication group",
    "protocols": "topology workload pace proxy proxy_host innodb_cluster provisioner blame terminals schema_mark "
    "tpcc_conditions",
    "implementations": "topologies workloads proxies provisioners",
    "clusters": "cluster filling store variants provider_options pool kept hand",
    "statistics": "claim estimate message verdict stalls counters sampler doctor notes metrics books client",
    "measuring": "measure series answer floor record durability rounds source comparison blind curve published "
    "settings history",
    "reports": "reporting scheduling grouping",
    "runs": "session fixture housekeeping",
    "users": "plugin cli",
}
RANKS = {module: rank for rank, modules in enumerate(LAYERS.values()) for module in modules.split()}
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))

# Modules that decide and therefore do no I/O: they see each other, and nothing that runs.
PURE = ["claim", "critical", "estimate", "message", "ordering", "stalls", "verdict"]
PURE_MAY = {*PURE, "errors"}
# Large or optional libraries: each in one file, imported when used. A library may have several top-level names.
OPTIONAL = {
    "testcontainers": "testcontainers",
    "boto3": "boto3 botocore",
    "asyncssh": "asyncssh",
    "allure": "allure allure_commons allure_pytest",
    "matplotlib": "matplotlib",
}
KNOWS_PYTEST = {"plugin", "scheduling"}
MODULE_LINES = 300
FUNCTION_LINES = 40
# Functions that are tables: an entry for each option, nothing to follow.
TABLES = {"settings.add_options"}
# Names that say nothing about what is in a file.
EMPTY_NAMES = {"utils", "util", "common", "base", "helpers", "misc", "manager"}


@functools.cache
def modules():
    """Every module of the package by its name inside of it, such as ``topologies.galera``."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    return {".".join(path.relative_to(PACKAGE).with_suffix("").parts): ast.parse(path.read_text()) for path in paths}


def typing_only(tree):
    """The nodes under ``if TYPE_CHECKING``: names for annotations, which nothing imports at run time."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {inner for block in blocks for statement in block.body for inner in ast.walk(statement)}


@functools.cache
def imports(module, *, loading_only=False):
    """The full names that a module imports; ``loading_only``: without those inside functions."""
    tree, found = modules()[module], []
    skipped = typing_only(tree)
    if loading_only:
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        skipped |= {inner for function in functions for inner in ast.walk(function)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def own_imports(module, *, loading_only=False):
    """The modules of the package that a module imports, by their names inside of it."""
    for name in imports(module, loading_only=loading_only):
        parts = name.split(".")[1:] if name.split(".")[0] == NAME else []
        for length in (len(parts), len(parts) - 1):
            if ".".join(parts[:length]) in modules():
                yield ".".join(parts[:length])
                break


def functions(tree, prefix):
    """Every function of a module with its full name."""
    for node in ast.iter_child_nodes(tree):
        name = f"{prefix}.{node.name}" if hasattr(node, "name") else prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, node
        yield from functions(node, name)


def body_lines(function):
    """The lines of a function without its docstring."""
    docstring = function.body[0] if ast.get_docstring(function, clean=False) is not None else None
    without = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    return function.end_lineno - function.lineno + 1 - without


def test_every_module_has_a_layer():
    """A new module is put into a layer on purpose, and a layer names nothing twice."""
    assert [name for name in modules() if name.split(".")[0] not in RANKS] == []
    assert len(RANKS) == sum(len(names.split()) for names in LAYERS.values())


@pytest.mark.parametrize("name", modules())
def test_imports_run_down(name):
    """A module imports from its own layer or from below; what is imported for annotations only does not count."""
    mine = RANKS.get(name.split(".")[0], 0)

    assert {used for used in own_imports(name) if RANKS.get(used.split(".")[0], 0) > mine} == set()


def test_loading_the_modules_makes_no_cycle():
    """The modules can be loaded in an order in which each one finds what it imports."""
    graph = {name: set(own_imports(name, loading_only=True)) for name in modules()}

    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(graph)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_of_implementations_do_not_import_each_other(folder):
    """Any topology goes with any load, any proxy and any provisioner, because none of them knows another."""
    inside = [name for name in modules() if name.startswith(f"{folder}.")]
    found = {used for name in inside for used in own_imports(name) if "." in used}

    assert {used for used in found if used.split(".")[0] != folder} == set()


@pytest.mark.parametrize("name", PURE)
def test_what_decides_does_no_io(name):
    """Claims, verdicts and orders are functions of their arguments: no module that runs anything is in reach."""
    outside = {"os", "pathlib", "subprocess", "socket", "time", "psutil", "numpy", "scipy"}

    assert set(own_imports(name)) <= PURE_MAY
    assert {used.split(".")[0] for used in imports(name)} & outside == set()


@pytest.mark.parametrize("library", OPTIONAL)
def test_an_optional_library_is_known_to_one_file(library):
    """It is imported in one file at most, and only inside a function."""
    tops = OPTIONAL[library].split()

    def used_by(*, loading_only):
        return [
            name
            for name in modules()
            if any(one.split(".")[0] in tops for one in imports(name, loading_only=loading_only))
        ]

    assert len(used_by(loading_only=False)) <= 1
    assert used_by(loading_only=True) == []


def test_only_the_plugin_knows_pytest():
    """Everything below it can be used, and tested, without a test run."""
    users = {name for name in modules() if any(one.split(".")[0] in ("pytest", "_pytest") for one in imports(name))}

    assert users <= KNOWS_PYTEST


def test_loading_the_plugin_needs_pytest_alone():
    """A run that measures nothing pays for nothing: past pytest's own modules only the standard library is loaded."""
    program = (
        "import sys, pytest; before = set(sys.modules); import pytest_dbcluster.plugin.hooks; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=PACKAGE.parent).split()

    assert set(loaded) - sys.stdlib_module_names - {NAME} == set()


@pytest.mark.parametrize("name", modules())
def test_a_module_is_read_in_one_sitting(name):
    """No module is longer than 300 lines."""
    path = PACKAGE / f"{name.replace('.', '/')}.py"

    assert len(path.read_text().splitlines()) <= MODULE_LINES


@pytest.mark.parametrize("name", modules())
def test_a_function_fits_on_a_screen(name):
    """No function has more than 40 lines besides its docstring, tables of options excepted."""
    long = {full: body_lines(function) for full, function in functions(modules()[name], name)}

    assert {full: lines for full, lines in long.items() if lines > FUNCTION_LINES and full not in TABLES} == {}


def test_names_of_files_say_what_is_in_them():
    """There is no file for whatever has no other place."""
    assert [name for name in modules() if name.split(".")[-1] in EMPTY_NAMES] == []

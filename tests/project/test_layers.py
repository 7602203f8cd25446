"""The shape of the code: who may import whom, what is imported only when used, and how long things may be."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_dbcluster"
NAME = PACKAGE.name

# Large or optional libraries: each in one file, imported when used. A library may have several top-level names.
OPTIONAL = {
    "testcontainers": "testcontainers",
    "boto3": "boto3 botocore",
    "allure": "allure allure_commons allure_pytest",
    "matplotlib": "matplotlib",
    "jinja2": "jinja2",
    "backports.zstd": "backports",
}
KNOWS_PYTEST = {
    "plugin.benchmarks",
    "plugin.collection.checks",
    "plugin.collection.own_provisioner",
    "plugin.hooks",
    "plugin.signals",
    "plugin.xdist",
    "testing",
}
MODULE_LINES = 500
FOLDER_MODULES = 12
FUNCTION_LINES = 40
# Names that say nothing about what is in a file.
EMPTY_NAMES = {"utils", "util", "common", "base", "helpers", "misc", "manager"}


@functools.cache
def modules():
    """Every module of the package by its name inside of it, such as ``clusters.topologies.galera``."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    return {".".join(path.relative_to(PACKAGE).with_suffix("").parts): ast.parse(path.read_text()) for path in paths}


FOLDERS = sorted(".".join(path.parent.relative_to(PACKAGE).parts) for path in PACKAGE.rglob("__init__.py"))


@functools.cache
def nodes(module):
    """All nodes of the tree of a module."""
    return [*ast.walk(modules()[module])]


@functools.cache
def imports(module, *, loading_only=False):
    """The full names that a module imports; ``loading_only``: without those inside functions and for annotations."""
    found, skipped = [], set()
    statements = [node for node in nodes(module) if isinstance(node, ast.Import | ast.ImportFrom)]
    if loading_only and statements:
        conditions = [node for node in nodes(module) if isinstance(node, ast.If)]
        blocks = [node for node in conditions if "TYPE_CHECKING" in ast.unparse(node.test)]
        functions = [node for node in nodes(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        skipped = {inner for block in (*blocks, *functions) for inner in ast.walk(block)}
    for node in statements:
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        else:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


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


def inside(folder):
    """The names of the modules and folders that lie directly in a folder of the package."""
    path = PACKAGE.joinpath(*folder.split(".")) if folder else PACKAGE
    files = [entry.stem for entry in path.glob("*.py") if entry.stem != "__init__"]
    return {*files, *(entry.parent.name for entry in path.glob("*/__init__.py"))}


def protected():
    """What the contracts of pyproject.toml keep inside of its room."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [name for one in contracts if one["type"] == "protected" for name in one["protected_modules"]]


def test_the_import_contracts_hold():
    """Rooms import from rooms below, nothing runs in a circle, statistics do no input or output."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder])
def test_a_face_names_what_others_may_import(folder):
    """Each module of a room is named by its face or protected by a contract, and none is both."""
    face = importlib.import_module(f"{NAME}.{folder}")
    own, covered = inside(folder), f"{NAME}.{folder}".rpartition(".")[0]
    named = set(face.__all__) & own
    kept = {name.rpartition(".")[2] for name in protected() if name.rpartition(".")[0] == f"{NAME}.{folder}"}
    if any(f"{NAME}.{folder}".startswith(name) for name in protected()):
        kept = own - named  # the whole folder is protected
    assert covered
    assert (named | kept, named & kept) == (own, set())


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder])
def test_a_face_says_what_the_room_is_for(folder):
    """It has a docstring, and defines nothing but the name of an implementation."""
    text = (PACKAGE.joinpath(*folder.split(".")) / "__init__.py").read_text()
    tree = ast.parse(text)
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]

    assert len(ast.get_docstring(tree)) > 30
    assert defined == []


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


def test_nothing_inside_uses_the_public_names():
    """They are for users: a module takes a name from where it is defined."""
    public = importlib.import_module(NAME).__all__
    uses = {(name, one) for name in modules() for one in imports(name) if one in {f"{NAME}.{each}" for each in public}}

    assert uses == set()
    assert [name for name in modules() if NAME in imports(name)] == []


def test_loading_the_plugin_needs_pytest_alone():
    """A run that measures nothing pays for nothing: past pytest's own modules only the standard library is loaded."""
    program = (
        "import sys, pytest; before = set(sys.modules); import pytest_dbcluster.plugin.hooks; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT).split()

    assert set(loaded) - sys.stdlib_module_names - {NAME} == set()


def test_a_run_without_clusters_loads_few_rooms(tmp_path):
    """A run of pytest without clusters loads the options of the plugin. It loads no room that measures or reports."""
    (tmp_path / "test_own.py").write_text("def test_nothing(): pass\n")
    program = (
        "import sys, pytest; pytest.main(['-q', '-p', 'no:cacheprovider', '--rootdir=.', '.']); "
        f"print(*(name for name in sys.modules if name.startswith('{NAME}.')))"
    )
    said = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path)
    loaded = {name.removeprefix(f"{NAME}.") for name in said.splitlines()[-1].split()}

    assert "1 passed" in said
    assert "plugin.hooks" in loaded
    measures = {"claims.kinds", "rounds.round", "measuring", "reporting", "testbed", "workloads", "clusters", "cli"}
    assert loaded & measures == set()


def test_a_module_is_read_in_one_sitting():
    """No module is longer than 500 lines."""
    lines = {name: len((PACKAGE / f"{name.replace('.', '/')}.py").read_text().splitlines()) for name in modules()}

    assert {name: number for name, number in lines.items() if number > MODULE_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_is_seen_at_a_glance(folder):
    """No folder has more than 12 modules. At the root the rooms are counted apart."""
    path = PACKAGE.joinpath(*folder.split(".")) if folder else PACKAGE

    assert len([entry for entry in path.glob("*.py") if entry.stem != "__init__"]) <= FOLDER_MODULES
    assert len(list(path.glob("*/__init__.py"))) <= FOLDER_MODULES


def test_a_function_fits_on_a_screen():
    """No function has more than 40 lines besides its docstring."""
    each = [one for name, tree in modules().items() for one in functions(tree, name)]

    assert {full: lines for full, function in each if (lines := body_lines(function)) > FUNCTION_LINES} == {}


def test_names_of_files_say_what_is_in_them():
    """There is no file for whatever has no other place."""
    assert [name for name in modules() if name.split(".")[-1] in EMPTY_NAMES] == []


def test_tests_mirror_the_rooms():
    """A folder of tests is a room of the package, or one of the few that are about all rooms."""
    tests = ROOT / "tests"
    folders = {path.name for path in tests.iterdir() if path.is_dir() and any(path.rglob("*.py"))}

    assert folders - {"contracts", "project", "root", "support", "typing", "whole"} <= inside("")
    assert [path.name for path in tests.glob("*.py")] == ["conftest.py"]


def test_no_class_name_stands_twice_in_the_package():
    """A reader who meets a name has one class to find."""
    found = {}
    for module in modules():
        for node in nodes(module):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(module)

    assert {name: places for name, places in found.items() if len(places) > 1} == {}


# Words of a state that do not end in -ed: a function is called after what it does, or after what it returns.
STATES = {"apart", "begun", "broken", "chosen", "done", "drawn", "forbidden", "found", "given", "gone", "heard"} | {
    "held", "hidden", "known", "left", "lent", "lost", "made", "said", "seen", "shown", "spent", "taken", "together"
} | {"told", "written"}  # fmt: skip
# Words in -ed that are no participles.
NOUNS = {"feed", "need", "seed", "speed", "testbed"}
# ``spec.named(...)`` and ``ordered(...)`` are public names; each call of ``reasons._stopped`` is a row of its table.
ALLOWED_STATES = {"spec: named", "measuring.series: ordered", "reasons: _stopped"}


def is_state(name):
    """Whether a name is one word for a state."""
    word = name.strip("_")
    return word in STATES or ("_" not in word and word.endswith("ed") and word not in NOUNS)


def test_functions_are_called_after_what_they_do_or_return():
    """A property may be a state, such as ``kept``."""
    found = set()
    for module in modules():
        for node in nodes(module):
            if isinstance(node, ast.FunctionDef) and is_state(node.name):
                of_class = [ast.unparse(decorator) for decorator in node.decorator_list]
                found |= {f"{module}: {node.name}"} if not any("property" in one for one in of_class) else set()

    assert found == ALLOWED_STATES


@functools.cache
def classes():
    """Every public class of the package by its name; no name stands twice."""
    found = [node for module in modules() for node in nodes(module) if isinstance(node, ast.ClassDef)]
    return {node.name: node for node in found if not node.name.startswith("_")}


def undocumented(name):
    """The public annotated fields of a class that have no docstring below them."""
    body = classes()[name].body
    for field, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and not field.target.id.startswith("_"):
            docstring = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            if not (docstring and isinstance(below.value.value, str)):
                yield field.target.id


def inherited(name):
    """The names that the base classes of a class define in this package: there they have their docstrings."""
    for base in map(ast.unparse, classes()[name].bases):
        if base in classes():
            body = classes()[base].body
            yield from (node.target.id for node in body if isinstance(node, ast.AnnAssign))
            yield from (node.name for node in body if isinstance(node, ast.FunctionDef))
            yield from inherited(base)


def test_a_field_of_a_public_class_has_a_docstring():
    """It stands below the field, or below the field of the base class that the field overrides."""
    bare = {f"{name}.{field}" for name in classes() for field in set(undocumented(name)) - set(inherited(name))}

    assert len(classes()) > 300
    assert bare == set()

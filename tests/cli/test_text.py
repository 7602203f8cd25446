"""The texts of the command: it names its own options, and not those of a test run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pytest_dbcluster
from pytest_dbcluster.cli import main
from pytest_dbcluster.cli.text import OF_TEST_RUN, own_options
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.rounds import round_length

COMPARE = ("cnf", "cnf_root", "release", "seconds", "image", "provisioner", "db_host")
# What compare is made of: the folders below the command, but for reporting.
ROOMS = ("testbed", "workloads", "clusters", "hosts", "releases", "system", "measuring", "rounds", "claims")
# Options of a test run whose texts cannot reach compare, and why.
UNREACHED = {
    "--db-keep": "compare leaves no servers running",
    "--db-event-budget": "compare has no events",
    "--db-run-budget": "compare has no budget of a run",
    "--db-max-pairs": "compare checks no number of options against a cap of pairs",
    "--db-seed": "a fixed seed is a remark of a test's message",
    "--db-parity": "compare takes variants of unlike durability",
}
# The budget of a claim: compare gives its own texts for it (``comparison.rules_of``).
GIVEN = {reach.__name__, round_length.__name__}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("measure with --db-provisioner local", "measure with --provisioner local"),
        ("--db-release x:1=DIR uses an unpacked release", "--release x:1=DIR uses an unpacked release"),
        ("name it with --db-cnf-root", "name it with --cnf-root"),
        ("pytest --db-release x:1", "--release x:1"),
        ("name more machines with --db-host", "name more machines with --db-host"),
        ("--db-parity normalised", "pytest --db-parity normalised"),
        ("pytest --db-keep", "pytest --db-keep"),
        ("--database and a--db", "--database and a--db"),
    ],
)
def test_an_option_of_a_test_run_becomes_that_of_the_command(text, expected):
    """What the command does not have is called an option of pytest."""
    assert own_options(text, COMPARE) == expected


def test_a_name_of_an_option_may_have_a_digit():
    """An option that the command has keeps its whole name."""
    assert own_options("take another --db-ec2-type", ("db_ec2_type",)) == "take another --db-ec2-type"


def test_an_error_of_the_command_names_its_own_options(called, tmp_path):
    """An ``!include`` of another host is answered with the option of the command."""
    for name in ("current", "candidate"):
        lines = f"# {name}\n!include /etc/mysql/other.cnf\n[mysqld]\nmax_connections = 200\n"
        (tmp_path / f"{name}.cnf").write_text(lines)

    done = called("compare", *(f"--cnf={tmp_path / name}.cnf" for name in ("current", "candidate")))

    assert "--cnf-root" in done.stdout + done.stderr
    assert "--db-" not in done.stdout + done.stderr


def named_options():
    """Each option of a test run in a text of what compare is made of, with its module; docstrings are no texts."""
    package = Path(pytest_dbcluster.__file__).parent
    for path in sorted(path for room in ROOMS for path in (package / room).rglob("*.py")):
        tree = ast.parse(path.read_text())
        documents = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
        }
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        yield from (
            (module, f"--db-{found['name']}")
            for node in texts
            if id(node) not in documents
            for found in OF_TEST_RUN.finditer(node.value)
        )


def test_every_option_that_a_text_of_compare_names_is_one_of_compare():
    """A text that names an option of a test run is rewritten for the command, which therefore needs that option."""
    arguments = main.parser(["compare"]).parse_args(["compare"])
    found = list(named_options())
    unknown = {
        (module, option)
        for module, option in found
        if own_options(option, vars(arguments)).startswith("pytest ")
        and option not in UNREACHED
        and not (option == round_length.BUDGET and module in GIVEN)
    }

    assert unknown == set()
    assert set(UNREACHED) <= {option for _, option in found}

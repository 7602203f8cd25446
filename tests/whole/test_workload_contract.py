"""The kit that tests workloads: our own workloads pass it, and each mistake in a user's workload fails one test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import conftests

SUPPORT = Path(__file__).parents[1] / "support"
SCRIPTS = Path(__file__).parents[1] / "workloads" / "script" / "scripts"
IMPORTS = """\
import dataclasses
import random
import time

from pytest_dbcluster import (
    TPCC, ClusterSpec, LuaScript, MySQLSlap, RunResult, SQLFiles, Setting, SysBench, Workload
)
from pytest_dbcluster.testing import WorkloadContract
"""
OWN = f"""
class TestMySQLSlap(WorkloadContract):
    workload = MySQLSlap("mixed", concurrency=4, queries=40, quick_queries=40, rows=300)


class TestSysBench(WorkloadContract):
    workload = SysBench("oltp_insert", table_count=2, size=300, threads=2, seconds=0.05)


class TestSQLFiles(WorkloadContract):
    workload = SQLFiles({str(SUPPORT / "items")!r}, threads=2, seconds=0.05)
    restores = "rows"


class TestLuaScript(WorkloadContract):
    workload = LuaScript({str(SCRIPTS / "counter.lua")!r}, threads=2, seconds=0.05, restore=True)


class TestTPCC(WorkloadContract):
    workload = TPCC(threads=2, seconds=0.1)
    restores = "nothing"
    statements = 0  # orders get their numbers from the tables
    # Both load a warehouse again; tests/workloads/tpcc has what they find.
    test_a_reset_restores_the_tables = test_clean_leaves_nothing = None
"""
GOOD = '''
@dataclasses.dataclass(frozen=True)
class Mine(Workload):
    """Rows that one connection inserts."""

    rows: int = 100
    writes = True
    tables = ("mine.items",)

    def __str__(self):
        return f"mine {self.rows}"

    def prepare(self, setting):
        node = setting.cluster.writers[0]
        node.query("CREATE DATABASE IF NOT EXISTS mine")
        node.query("CREATE TABLE IF NOT EXISTS mine.items (id INT PRIMARY KEY, value INT NOT NULL)")
        node.query("REPLACE INTO mine.items VALUES (0, 0)")

    def reset(self, setting):
        setting.cluster.writers[0].query("DELETE FROM mine.items WHERE id > 0")

    def run(self, setting):
        inputs, node = random.Random(setting.seed), setting.cluster.writers[0]
        began = time.monotonic()
        for number in range(1, self.rows + 1):
            node.query(f"INSERT INTO mine.items VALUES ({number}, {inputs.randrange(10**9)})")
        return RunResult(time.monotonic() - began, operations=self.rows, commits=self.rows)

    def clean(self, setting):
        setting.cluster.writers[0].query("DROP DATABASE IF EXISTS mine")


class TestMine(WorkloadContract):
    workload = Mine()
'''
RIGHT = 99  # the number of the class without a mistake
# What is wrong -> the text that is replaced, its replacement, the test that fails, and its message.
WRONG = {
    "not frozen": ("(frozen=True)", "", "its_name", "Mine is not a frozen dataclass: write @dataclasses.dataclass"),
    "no dataclass": ("@dataclasses.dataclass(frozen=True)", "", "its_name", "Mine is not a frozen dataclass"),
    "no name": ("def __str__", "def named", "its_name", "Mine has no __str__: add one that returns a short name"),
    "not hashable": ("Mine()", "Mine(rows=[1])", "its_name", "Mine cannot be hashed (unhashable type: 'list')"),
    "an address as its name": ('f"mine {self.rows}"', "object.__repr__(self)", "its_name", "has an address in memory"),
    "a name with a separator": ('"mine {', '"mine | {', "its_name", "which separates the parts of a claim's id"),
    "other inputs each time": ("random.Random(setting.seed)", "random.Random()", "equal_blocks", "setting.seed"),
    "no reset": (
        "DELETE FROM mine.items WHERE id > 0",
        "DO 0",
        "reset",
        "after a reset the tables differ from those of",
    ),
    "a reset that forgets a row": (
        "WHERE id > 0",
        "WHERE id > 1",
        "reset",
        "after a reset the tables differ from those of",
    ),
    "a reset that takes too much": (" WHERE id > 0", "", "reset", "after a reset the tables differ from those of"),
    "it says that it only reads": ("writes = True", "writes = False", "reset", "set writes to True"),
    "no operations": ("operations=self.rows", "operations=0", "reports", "a run reports 0 operations"),
    "rows that it makes again": ("(0, 0)", "(0, RAND() * 1e9)", "second", "a second prepare changed the tables"),
    "tables stay": ("DROP DATABASE IF EXISTS mine", "DO 0", "clean", "clean leaves tables behind"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """``run(text)``: the outcomes of the tests of a file, by name, and what pytest printed."""
    place = tmp_path_factory.mktemp("contract")
    (place / "conftest.py").write_text(
        conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.SHORT_ROUNDS + conftests.BRIEF_TIMES
    )
    environment = {**os.environ, "DBCLUSTER_DATA_DIR": str(place / "runs"), "COLUMNS": "400"}

    def run(text, *words):
        (place / "test_mine.py").write_text(IMPORTS + text)
        plain = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-v", *words]
        command = [sys.executable, "-m", "pytest", *plain]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        found = re.findall(r"::(Test\w+::test_\w+)\S* (PASSED|FAILED|ERROR|SKIPPED|INCONCLUSIVE)", done.stdout)
        return dict(found), done.stdout + done.stderr

    return run


def own_name(text, number):
    """The text of a class with a name and a database of its own."""
    return text.replace("Mine", f"Mine{number:02}").replace("mine", f"mine{number:02}")


@pytest.fixture(scope="module")
def of_users(run):
    """One run of a user's class, and of those with a mistake, each with its test: the outcomes, and what is printed."""
    texts, chosen = [own_name(GOOD, RIGHT)], [f"TestMine{RIGHT}"]
    for number, (old, new, test, _) in enumerate(WRONG.values()):
        assert old in GOOD
        texts.append(own_name(GOOD.replace(old, new), number))
        chosen.append(f"TestMine{number:02} and {test}")
    return run("".join(texts), "-k", " or ".join(chosen))


@pytest.mark.thorough  # each of our workloads has its contracts in tests/contracts
def test_our_workloads_pass_their_contract(run):
    """Names, inputs, resets, and claims on a real server."""
    outcomes, text = run(OWN)

    assert {name.partition("::")[0] for name in outcomes} == set(re.findall(r"class (Test\w+)", OWN))
    skipped = {"TestTPCC::test_equal_blocks_have_equal_inputs"}
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome not in ("PASSED", "INCONCLUSIVE")}
    assert set(wrong) == skipped, text


def test_a_workload_of_a_user_passes(of_users):
    """A class of thirty lines, whose statements go over the connection of the plugin."""
    outcomes, text = of_users
    own = [outcome for name, outcome in outcomes.items() if name.startswith(f"TestMine{RIGHT}::")]

    assert len(own) == 8
    assert set(own) <= {"PASSED", "INCONCLUSIVE"}, text


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_fails_a_test_that_says_what_is_wrong(of_users, mistake):
    """The test of the kit is called after what is wrong."""
    outcomes, printed = of_users
    parts = re.split(r"\n_{5,}", printed)
    number = list(WRONG).index(mistake)
    *_, message = WRONG[mistake]
    own = {name: outcome for name, outcome in outcomes.items() if name.startswith(f"TestMine{number:02}::")}
    text = "\n".join(part for part in parts if part.startswith(f" TestMine{number:02}."))

    assert "FAILED" in own.values(), parts
    assert own_name(message, number) in " ".join(text.split()), text

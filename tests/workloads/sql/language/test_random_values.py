"""Random values of transaction files, drawn by sysbench's Lua."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.workloads.sql.lua_runs import run_lua

SCRIPT = """\
local random = require("sql_random")
local function draws()
   local found = {}
   for number = 1, %d do
      random.seed(7, 3, number, 2)
      found[number] = string.format("%%s", %s)
   end
   print('["' .. table.concat(found, '", "') .. '"]')
end
sysbench.cmdline.commands = {go = {draws}}
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """``drawn("random.random('', 1, 5)", 100)``: so many values, each of another transaction."""

    def drawn(code, count=20_000):
        return json.loads(run_lua(tmp_path_factory.mktemp("lua"), SCRIPT % (count, code))[0])

    return drawn


def counted(values):
    """How often each number was drawn, as shares."""
    counts = Counter(int(value) for value in values)
    return {number: times / len(values) for number, times in counts.items()}


def test_random_is_uniform(drawn):
    """Both ends included."""
    shares = counted(drawn("random.random('', 3, 7)"))

    assert set(shares) == {3, 4, 5, 6, 7}
    assert all(share == pytest.approx(0.2, abs=0.02) for share in shares.values())


@pytest.mark.parametrize("exponent", [0.2, 0.5, 0.99, 1, 1.1, 2, 3])
def test_zipf_has_the_shares_of_its_exponent(drawn, exponent):
    """The k-th number is drawn k^-exponent times as often as the first, for any exponent above 0."""
    size = 50
    shares = counted(drawn(f"random.random_zipfian('', 11, {10 + size}, {exponent})"))
    weights = [rank**-exponent for rank in range(1, size + 1)]

    assert set(shares) <= set(range(11, 11 + size))
    for rank in (1, 2, 3, 10, 50):
        expected = weights[rank - 1] / sum(weights)
        assert shares.get(10 + rank, 0) == pytest.approx(expected, abs=4 * (expected / 20_000) ** 0.5 + 1e-4)


def test_zipf_takes_large_ranges(drawn):
    """Without a table of all numbers."""
    values = [int(value) for value in drawn("random.random_zipfian('', 1, 1000000000, 0.9)", 2000)]

    assert 1 <= min(values) <= 50
    assert max(values) > 10**8


def test_exponential_and_gaussian_have_their_shapes(drawn):
    """An exponential one falls by e^parameter over its range; a normal one is symmetric."""
    falling = counted(drawn("random.random_exponential('', 1, 10, 5)"))
    normal = counted(drawn("random.random_gaussian('', 1, 9, 4)"))

    assert set(falling) == set(range(1, 11))
    assert falling[1] / falling[2] == pytest.approx(2.718**0.5, rel=0.1)
    assert max(normal, key=normal.get) == 5
    assert normal[4] == pytest.approx(normal[6], rel=0.15)
    assert sum(normal.get(number, 0) for number in (4, 5, 6)) == pytest.approx(0.81, abs=0.03)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 1000, 4096, 5000])
@pytest.mark.parametrize("seed", [0, 5])
def test_permute_is_a_bijection(drawn, size, seed):
    """Every number has one other number in the range, which is not near it."""
    values = [int(value) for value in drawn(f"random.permute('', number - 1, {size}, {seed})", size)]

    assert sorted(values) == list(range(size))
    if size >= 100:
        steps = [abs(after - before) for before, after in itertools.pairwise(values)]
        assert sum(step < size / 20 for step in steps) < size / 5


def test_permute_depends_on_its_key(drawn):
    """Other seeds, other orders; the largest size works."""
    orders = [tuple(drawn(f"random.permute('', number - 1, 1000, {seed})", 1000)) for seed in range(3)]
    large = [int(value) for value in drawn("random.permute('', number - 1, 2147483648, 1)", 1000)]

    assert len(set(orders)) == 3
    assert len(set(large)) == 1000
    assert min(large) < 2**31 / 4 < max(large) < 2**31


def test_texts_and_digits(drawn):
    """Letters, digits in place of #, and lengths in a range."""
    said = SimpleNamespace(
        texts=drawn("random.random_text('', 2, 4)", 500), digits=drawn("random.random_digits('', '#a-##')", 500)
    )

    assert {len(text) for text in said.texts} == {2, 3, 4}
    assert all(text.isalpha() and text.islower() for text in said.texts)
    assert all(text[0].isdigit() and text[1:3] == "a-" and text[3:].isdigit() for text in said.digits)
    assert len(set(said.digits)) > 200


def test_weights_decide(drawn):
    """A weight of 0 never comes."""
    shares = Counter(drawn("random.random_weighted('', 'a', 70, 'b', 0, 'c', 30)"))

    assert set(shares) == {"a", "c"}
    assert shares["a"] / 20_000 == pytest.approx(0.7, abs=0.02)


def test_values_depend_on_seed_terminal_transaction_and_step(drawn):
    """And on nothing else, so that every variant of a block gets the same ones."""
    wide = "random.random('', 1, 1000000000)"
    same, again = drawn(wide, 100), drawn(wide, 100)
    seeds = ["random.seed(8, 3, number, 2)", "random.seed(7, 4, number, 2)", "random.seed(7, 3, number, 3)"]
    others = [drawn(f"(function() {seed} return {wide} end)()", 100) for seed in seeds]

    assert same == again
    assert len(set(same)) > 95
    assert all(set(same).isdisjoint(other) for other in others)

"""Expressions: their precedence, types and values, as sysbench's Lua computes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql.language import expressions, value_types
from pytest_dbcluster.workloads.sql.language.expressions import Literal, Operation
from pytest_dbcluster.workloads.sql.language.lexer import SQLText
from tests.workloads.sql.lua_runs import sent

VALUES = {
    "1 + 2 * 3": "7",
    "(1 + 2) * 3": "9",
    "10 - 4 - 3": "3",
    "7 / 2": "3",
    "-7 / 2": "-3",
    "7.0 / 2": "3.5",
    "7 % 3": "1",
    "-7 % 3": "-1",
    "mod(7, 3)": "1",
    "2 + 3 * -1": "-1",
    "- - 5": "5",
    "1 << 4 | 1": "17",
    "6 & 3": "2",
    "6 # 3": "5",
    "~ 5": "-6",
    "256 >> 4": "16",
    "1 < 2": "TRUE",
    "1 = 2 or 2 <> 3 and not 1 > 2": "TRUE",
    "not (1 = 1)": "FALSE",
    "1 + 1 == 2": "TRUE",
    "null is null": "TRUE",
    "1 is not null": "TRUE",
    "(1 = 1) is true": "TRUE",
    "5 notnull": "TRUE",
    "case when 1 > 2 then 'a' when 2 > 1 then 'b' else 'c' end": "'b'",
    "case when 1 > 2 then 'a' end": "NULL",
    "case when 1 > 2 then 5 else 6 end": "6",
    "concat('a', 1, 2.5, 'b')": "'a12.5b'",
    "concat('it''s ', '\\')": "'it''s \\\\'",
    "greatest(1, 5, 3)": "5",
    "least(4, 2.5)": "2.5",
    "abs(-5)": "5",
    "int(5.9)": "5",
    "int(-5.9)": "-5",
    "double(5) / 2": "2.5",
    "ceil(5.1)": "6",
    "floor(5.9)": "5",
    "sqrt(16)": "4",
    "pow(2, 10)": "1024",
    "round_trip": "",
    "exp(0)": "1",
    "ln(1)": "0",
    "pi() > 3.14": "TRUE",
    "9007199254740991 + 0": "9007199254740991",
    "123456789012345": "123456789012345",
    "1.5e3": "1500",
    ".5": "0.5",
    "permute(0, 1)": "0",
    "random(5, 5)": "5",
    "random_weighted('a', 0, 'b', 1)": "'b'",
    "random_text(0)": "''",
    "random_digits('a-b')": "'a-b'",
}
del VALUES["round_trip"]
FAILING = {
    "5 / (1 - 1)": "division by zero",
    "5 % (1 - 1)": "division by zero",
    "5.0 / (1 - 1)": "division by zero",
    "random(:zero + 5, 1)": "the low end 5 is above the high end 1",
    "sqrt(0 - 1)": "sqrt: the number must be 0 or more",
    "ln(0)": "ln: the number must be above 0",
    "permute(1, 0 + 0)": "permute: the size must be from 1 to 2147483648",
    "random_zipfian(1, 5, 1 - 1)": "random_zipfian: the exponent must be above 0",
}


def parsed(text):
    """The tree of an expression."""
    return expressions.parse(SQLText("shop/a.sql", text), text, 0)


def test_values_are_those_of_pgbench(tmp_path):
    """Whole numbers are divided to whole numbers, towards zero."""
    lines = [f"\\set value {text}\nSELECT :value;" for text in VALUES]

    assert sent(tmp_path, "\n".join(lines)) == [f"SELECT {value}" for value in VALUES.values()]


@pytest.mark.parametrize("text", FAILING)
def test_a_value_that_cannot_be_computed_names_its_place(tmp_path, text):
    """The line and the column of the user's file."""
    with pytest.raises(AssertionError) as caught:
        sent(tmp_path, f"\\set zero 0\n\\set value {text}\nSELECT :value;")

    assert "shop/a.sql".replace("a.sql", "one.sql:2:") in str(caught.value)
    assert FAILING[text] in str(caught.value)


NUMBERS = st.integers(0, 1000).map(lambda number: (str(number), number))


def operation(parts):
    """An operation in parentheses, as text and as value."""
    (left, a), operator, (right, b) = parts
    return f"({left} {operator} {right})", {"+": a + b, "-": a - b, "*": a * b}[operator]


TREES = st.recursive(
    NUMBERS, lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(operation), max_leaves=6
)


def value_of(tree):
    """The value of a tree of whole numbers."""
    if isinstance(tree, Literal):
        return tree.value
    assert isinstance(tree, Operation)
    values = [value_of(operand) for operand in tree.operands]
    if len(values) == 1:
        return -values[0]
    return {"+": values[0] + values[-1], "-": values[0] - values[-1], "*": values[0] * values[-1]}[tree.operator]


@given(TREES)
def test_parentheses_hold(tree):
    """Whatever is nested."""
    text, value = tree

    assert value_of(parsed(text)) == value


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 50)), max_size=8))
def test_operators_have_the_precedence_of_arithmetic(parts):
    """Multiplication first, then from the left."""
    text = "7" + "".join(f" {operator} {number}" for operator, number in parts)

    assert value_of(parsed(text)) == eval(text)


@given(st.text("abc:;'\"()+-*/<>=0123456789., \\", max_size=20))
def test_any_text_is_an_expression_or_an_error(text):
    """Never another exception, and never a message without a place."""
    said = ""
    try:
        parsed(text)
    except ConfigError as error:
        said = str(error)
    assert not said or said.startswith("shop/a.sql:1:")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", "int"),
        ("1 + 1.5", "double"),
        ("'a'", "text"),
        ("1 < 2", "bool"),
        ("null", "null"),
        (":known * 2", "int"),
        (":read * 2", "any"),
        ("case when true then 1 else 'a' end", "any"),
        ("random_weighted('a', 1, 'b', 2)", "text"),
        ("random_weighted(1, 1, 2, 2)", "int"),
        ("greatest(1, 2.5)", "double"),
    ],
)
def test_types_are_known_before_a_run(text, kind):
    """As far as its variables are."""
    assert value_types.type_of(parsed(text), {"known": "int", "read": "any"}) == kind

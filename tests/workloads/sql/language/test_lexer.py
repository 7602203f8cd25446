"""Tokens of SQL: where a variable is one, and where it is text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql.language.lexer import SQLText, replace_variables

VARIABLE = st.from_regex(r":[A-Za-z_][A-Za-z_0-9]{0,5}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="'\"`\\*/\r\n"), max_size=12)
WITHIN = st.builds(lambda before, name, after: before + name + after, TEXT, VARIABLE, TEXT)
QUIET = st.one_of(
    WITHIN.map(lambda text: f"'{text}'"),
    WITHIN.map(lambda text: f'"{text}"'),
    WITHIN.map(lambda text: f"`{text}`"),
    WITHIN.map(lambda text: f"'it''s \\'{text}'"),
    WITHIN.map(lambda text: f"/* {text} */"),
    WITHIN.map(lambda text: f"/*! {text} */"),
    WITHIN.map(lambda text: f"-- {text}\n"),
    WITHIN.map(lambda text: f"#{text}\n"),
)
PLAIN = st.sampled_from(["SELECT 1", "a = b", "x:=5", "@a := 7", "(1, 2)", "12.5e3", "a.b", "-1 - -2"])


def replaced(text):
    """The text with ``<name>`` for each variable."""
    return replace_variables(SQLText("shop/a.sql", text), lambda token: f"<{token.text[1:]}>")


@given(st.lists(st.one_of(QUIET, PLAIN, VARIABLE), max_size=8))
def test_variables_are_replaced_outside_of_quotes_and_comments_only(pieces):
    """Whatever stands between them."""
    expected = [f"<{piece[1:]}>" if piece.startswith(":") else piece for piece in pieces]

    assert replaced(" ".join(pieces)) == " ".join(expected)


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_tokens_are_the_whole_text(text):
    """No character is lost; quotes without an end are the only error."""
    tokens, said = [], ""
    try:
        tokens += SQLText("shop/a.sql", text).tokens()
    except ConfigError as error:
        said = str(error)
    if said:
        assert re.search("ha(s|ve) no end: ", said)
    else:
        assert "".join(token.text for token in tokens) == text


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("SELECT '12:30', :a", "SELECT '12:30', <a>"),
        ("SET @x := :a, @y=:b", "SET @x := <a>, @y=<b>"),
        ("SELECT @x:=:a", "SELECT @x:=<a>"),
        ("LIMIT :a,:b", "LIMIT <a>,<b>"),
        ("SELECT 5--:a", "SELECT 5--<a>"),
        ("SELECT 5 -- :a", "SELECT 5 -- :a"),
        ("'a\\\\' :a", "'a\\\\' <a>"),
        ("'a''' :a ''", "'a''' <a> ''"),
        ("x::a", "x::a"),
        ("'über' :straße", "'über' <straße>"),
    ],
)
def test_what_looks_like_a_variable(text, result):
    """Times and assignments stay; two dashes without a space are no comment."""
    assert replaced(text) == result


@pytest.mark.parametrize("text", ["'", "'a\\'", "'a''", '"', "`a", "/*/", "/* a", "'a\\"])
def test_quotes_and_comments_need_an_end(text):
    """The error names the place where they begin."""
    with pytest.raises(ConfigError, match=r"shop/a\.sql:2:2: (this comment has|these quotes have) no end"):
        replaced(f"a\n {text}")


def test_a_line_goes_on_after_a_backslash():
    """The places of what follows stay the same."""
    source = SQLText("shop/a.sql", "\\set a 1 \\\n + 2\nSELECT")

    assert source.rest_of_line(4) == (" a 1    + 2", 15)
    assert str(source.place(16)) == "shop/a.sql:3:1"

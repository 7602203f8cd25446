"""Statements of large files: where each begins and ends, as the clients of the vendors see it, in constant memory."""

from __future__ import annotations

import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql.statement_stream import StatementStream

TEXT = rb"""/*M!999999\- enable the sandbox mode */
-- MariaDB dump
--
/*!40101 SET @a=1 */; SELECT 1; # one; two
INSERT INTO a VALUES ('a;\'b''c', "x;\"", `q;`, 'two
lines; -- no'), (5-4, 5/4, 3--1, 2 -- it's; no end
); /* c ;
 ' */ SELECT /* it's; */ 2;
DELIMITER ;;
/*!50003 CREATE*/ /*!50003 TRIGGER t BEFORE INSERT ON n FOR EACH ROW BEGIN
SET NEW.score = 7; /* x ' */ END */;;
delimiter //
SELECT a/b//
DELIMITER $$
SELECT '$$', a$b$$
DELIMITER ;
SELECT 9
-- Dump completed"""


def statements(text, most=1000):
    """Places and texts of the statements."""
    return [(f"{place}", found.decode()) for place, found in StatementStream(io.BytesIO(text), "f", most)]


def test_statements_end_at_the_delimiter():
    """Not in quotes, nor in comments; what only some versions run is text of the statement."""
    found = statements(TEXT)

    places = [place.removeprefix("f:") for place, _ in found]
    assert places == ["4:1", "4:23", "5:1", "8:7", "10:1", "13:1", "15:1", "17:1"]
    texts = [text for _, text in found]
    assert texts[:2] == ["/*!40101 SET @a=1 */", "SELECT 1"]
    assert texts[2].startswith("INSERT INTO a VALUES ('a;\\'b''c', ")
    assert texts[2].endswith("2 -- it's; no end\n)")
    assert texts[3] == "SELECT /* it's; */ 2"
    assert texts[4].endswith("/* x ' */ END */")
    assert texts[5:] == ["SELECT a/b", "SELECT '$$', a$b", "SELECT 9\n-- Dump completed"]


def test_the_last_comment_is_known():
    """Outside of statements: it shows whether a dump is whole."""
    stream = StatementStream(io.BytesIO(b"SELECT 1;\n-- one\nSELECT 2;\n-- two\n\n"), "f", 100)
    assert len(list(stream)) == 2
    assert stream.comment == b"-- two"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"SELECT 1;\n SELECT 'never;\n\n", "f:2:9: these quotes have no end in this file"),
        (b"/* SELECT 1;\n", "f:1:1: this comment has no end in this file"),
        (b"\nDELIMITER\n", "f:2:1: DELIMITER needs a text after it"),
        (
            b"SELECT 1;\nSELECT\n '" + b"x" * 30 + b"';",
            "f:2:1: this statement has more than 35 bytes, .* --net-",
        ),
        (b"SELECT 1;\n" + b"x" * 50, "f:2:1: this statement has more than "),
    ],
)
def test_what_has_no_end_or_is_too_long_names_its_line(text, words):
    """With what to do."""
    with pytest.raises(ConfigError, match=words):
        statements(text, most=35)


def reference(text):
    """The statements of a text with the delimiter ;; read character by character; None without an end of quotes."""
    found, current, at, inside = [], "", 0, ""
    while at < len(text):
        character = text[at]
        if inside == "*":
            width = 2 if text.startswith("*/", at) else 1
            inside = "" if width == 2 else inside
            current += text[at : at + width] if current.strip() else ""
            at += width
        elif inside:
            width = 2 if character == "\\" and inside != "`" else 1
            inside = "" if character == inside else inside
            current += text[at : at + width]
            at += width
        elif text.startswith(";;", at):
            found, current, at = [*found, current.strip()], "", at + 2
        elif character == "#" or (text.startswith("--", at) and not text[at + 2 : at + 3].strip()):
            end = text.find("\n", at) + 1 or len(text)
            current += text[at:end] if current.strip() else ""
            at = end
        elif text.startswith("/*", at) and not text.startswith(("/*!", "/*+", "/*M!"), at):
            inside, current, at = "*", current + ("/*" if current.strip() else ""), at + 2
        else:
            inside = character if character in "'\"`" else ""
            current, at = current + character, at + 1
    return None if inside else [each for each in [*found, current.strip()] if each]


@given(st.text("'\"`;/-*#\\\n a!M+", max_size=40).map(lambda text: text.replace(";", ";;")))
def test_statements_are_those_of_a_plain_reading(text):
    """Any mixture of quotes, comments, escapes and delimiters."""
    stream = StatementStream(io.BytesIO(b"DELIMITER ;;\n" + text.encode()), "f", 1000)
    try:
        found = [each.text.decode() for each in stream]
    except ConfigError:
        found = None
    assert found == reference(text)


class Rows(io.RawIOBase):
    """A file of INSERTs of 64 KiB that nothing has in memory."""

    def __init__(self, lines):
        self.lines = lines
        row = b"(1,'it\\'s; a row',NULL)"
        self.line = b"INSERT INTO t VALUES " + b",".join([row] * (65536 // len(row))) + b";\n"

    def readline(self, size=-1):
        """The same line again, so many times."""
        self.lines -= 1
        return self.line if self.lines >= 0 else b""


def test_memory_does_not_grow_with_the_file():
    """40 MiB take no more than a few statements."""
    tracemalloc.start()
    try:
        count = sum(1 for _ in StatementStream(Rows(640), "f", 2**20))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert count == 640
    assert peak < 2**20

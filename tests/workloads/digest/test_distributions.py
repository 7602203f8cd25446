"""Distributions: how values are drawn again, and that no text of the log is in a result."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.workloads.digest import distributions
from tests.workloads.digest.logs import BEGIN


def zipf(size, exponent, count=2000):
    """Numbers from 1 to ``size`` whose frequencies fall with this exponent."""
    return random.Random(1).choices(range(1, size + 1), [rank**-exponent for rank in range(1, size + 1)], k=count)


@pytest.mark.parametrize(("size", "exponent"), [(200, 1.1), (10_000, 0.9), (100_000, 1.3)])
def test_the_exponent_of_skewed_keys_is_found(size, exponent):
    """From the number of equal pairs."""
    assert distributions.zipf_exponent(zipf(size, exponent), size) == pytest.approx(exponent, abs=0.08)


def test_keys_with_equal_chances_have_no_exponent():
    """They are drawn from the whole range."""
    drawn = random.Random(1)

    assert distributions.keys([drawn.randint(1, 5000) for _ in range(2000)], ":orders", 5000) == "random(1, :orders)"


def test_hot_keys_are_low_or_spread_as_in_the_log():
    """A permutation spreads them."""
    low = zipf(1000, 1.2)
    places = list(range(1, 1001))
    random.Random(2).shuffle(places)

    assert distributions.keys(low, ":n", 1000).startswith("random_zipfian(1, :n, 1.")
    assert distributions.keys([places[one - 1] for one in low], ":n", 1000).startswith(
        "permute(random_zipfian(1, :n, 1."
    )


def test_few_small_numbers_keep_their_frequencies():
    """In parts of a thousand."""
    drawing = distributions.number([1] * 70 + [2] * 20 + [5] * 10)

    assert drawing.expression == "random_weighted(1, 700, 2, 200, 5, 100)"


@pytest.mark.parametrize(
    ("number", "inline"), [(0, "0"), (10, "10"), (-5, "-5"), (1000, "1000"), (1001, "1000"), (52_344, "50000")]
)
def test_a_large_constant_is_rounded(number, inline):
    """A small one stays as it is."""
    assert distributions.number([number] * 50).inline == inline


def test_a_range_is_rounded_outward():
    """Its bounds have two digits."""
    assert distributions.number([12_345, 67_891, 23_456, 34_567]).expression == "random(12000, 68000)"


def test_numbers_with_a_point_keep_their_digits():
    """As whole numbers that are divided."""
    assert distributions.decimal(["1.50", "99.99", "7"]).expression == "random(100, 10000) / 100.0"
    assert distributions.decimal(["3e0", "1.5E0"]).expression == "random(15, 30) / 10.0"
    assert distributions.decimal(["3e0", "3e0"]).inline == "3"


@pytest.mark.parametrize(
    ("values", "expression"),
    [
        (["'123-45'", "'678-90'"], "random_digits('###-##')"),
        (["'abc'", "'xyz'"], "random_text(3)"),
        (["'a'", "'it''s'", "'x\\'y'"], "random_text(1, 4)"),
        (["''", "''"], "''"),
        (["'\x005000"], "random_text(5000)"),
    ],
)
def test_a_text_keeps_its_shape(values, expression):
    """Digits and signs, or its length."""
    assert distributions.text(values, 0).expression == expression


def test_a_text_fits_its_column():
    """The log may have longer ones."""
    assert distributions.text(["'abcdef'"], 4).expression == "random_text(4)"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="'\\\0")), min_size=1, max_size=9))
def test_no_letter_of_the_log_is_in_a_shape(texts):
    """Whatever the texts are."""
    drawing = distributions.text([f"'{text}'" for text in texts], 0)
    allowed = {"random_text", "random_digits"}
    words = {word for word in drawing.expression.replace("(", " ").replace("'", " ").split() if word[0].isalpha()}

    assert words <= allowed


def test_the_time_of_a_statement_is_now():
    """Whatever the time zone of the application."""
    values, times = ["'2023-11-15 00:13:20'", "'2023-11-15 00:13:21.5'"], [BEGIN, BEGIN + 1]

    assert distributions.dates(values, times, searched=False).inline == "NOW()"
    assert distributions.dates(["'2023-11-14'"] * 2, times, searched=False).inline == "CURDATE()"


def test_other_times_are_an_age_or_a_place_in_generated_rows():
    """Generated rows have dates of four years."""
    values, times = ["'2023-11-04 22:13:20'", "'2023-10-01 00:00:00'"], [BEGIN, BEGIN]
    written = distributions.dates(values, times, searched=False)
    searched = distributions.dates(values, times, searched=True)

    assert (written.expression, written.inline) == ("random(800000, 3900000)", "NOW() - INTERVAL {} SECOND")
    assert searched.inline == "'2020-01-01' + INTERVAL {} SECOND"


def test_times_to_come_are_after_now():
    """Such as the end of a session."""
    drawing = distributions.dates(["'2023-11-28 22:13:20'", "'2023-11-28 22:13:21'"], [BEGIN] * 2, searched=False)

    assert (drawing.expression, drawing.inline) == ("random(1200000, 1300000)", "NOW() + INTERVAL {} SECOND")


def test_texts_that_are_no_dates_are_none():
    """Impossible dates too."""
    assert distributions.dates(["'abc'"], [0], searched=False) is None
    assert distributions.dates(["'2023-02-31'"], [0], searched=False) is None


def test_patterns_keep_their_wildcards():
    """At the begin and at the end."""
    assert (
        distributions.pattern(["'%lamp%'", "'%cup%'"], nothing=False).expression
        == "concat('%', random_text(3, 4), '%')"
    )
    assert distributions.pattern(["'ann%'"], nothing=False).expression == "concat(random_text(3), '%')"
    assert distributions.pattern(["'%cup%'"], nothing=True).expression == "concat('%', '~', random_text(3), '%')"


def test_null_is_as_frequent_as_in_the_log():
    """In percent."""
    drawing = distributions.with_null(distributions.ValueDrawing("random(1, 9)"), ["NULL", "1", "2", "3"])

    assert drawing.expression == "CASE WHEN random(1, 100) <= 25 THEN null ELSE random(1, 9) END"

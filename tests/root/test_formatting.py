"""Ratios, sizes, durations and counts in messages."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.errors import ConfigError

MARGINS = st.integers(1, 9999).map(lambda tenth: tenth / 10000)
RATIOS = st.floats(0, exclude_min=True, allow_infinity=True, allow_nan=False)
NEAR = st.floats(-1e-3, 1e-3).map(math.exp)


@st.composite
def limits_and_ends(draw):
    """The limits of a claim, on one cluster or on separate ones, and three ratios, mostly near a limit, in order."""
    make = draw(st.sampled_from([kinds.beats, kinds.no_slower_than, kinds.same_as, kinds.lower, kinds.ordered]))
    apart = draw(st.sampled_from([0.0, 0.055]))
    limits = claims.Claim(make(draw(MARGINS)).kind, draw(MARGINS), apart).limits
    near = st.builds(lambda limit, times: limit * times, st.sampled_from(limits), NEAR)
    return limits, sorted(draw(st.lists(near | RATIOS | st.sampled_from(limits), min_size=3, max_size=3)))


def sides(values, limit):
    """For each value whether it lies below, on or above the limit."""
    return [(value > limit) - (value < limit) for value in values]


@given(limits_and_ends())
@example(((1.0,), [0.84, 0.92, 0.9973]))
@example(((1.0,), [0.84, 0.92, math.nextafter(1, 0)]))
@example(((0.95, 1.0 / 0.95), [0.0, 1.0, math.inf]))
@example(((1.0001,), [1.0001, math.inf, math.inf]))
def test_a_printed_interval_contains_a_bound_exactly_if_the_true_one_does(made):
    """No end, and no estimate, is rounded onto or across a bound; the printed estimate lies in the printed interval."""
    limits, (low, value, high) = made
    text, _, rest = formatting.with_interval(value, low, high, limits).partition(" (")
    ratio = text.removesuffix("x")
    shown = [] if rest.startswith("no") else [float(end) for end in rest.rstrip(")").split(" .. ")]

    for limit in limits:
        assert sides([float(ratio)], limit) == sides([value], limit)
        assert sides(shown, limit) == (sides([low, high], limit) if shown else [])
    assert not shown or shown[0] <= float(ratio) <= shown[1]


@given(st.floats(1e-300, 1e300) | st.floats(0.01, 100))
def test_a_ratio_is_rounded_to_half_a_percent(value):
    """Of itself, or of 1 where it is between a tenth and 1: two decimals there, three digits elsewhere."""
    half_percent = 0.0051 if 0.0995 <= value < 1 else 0.0051 * value

    assert float(formatting.ratio(value).removesuffix("x")) == pytest.approx(value, rel=0, abs=half_percent)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.012345, "0.01235"),
        (48.661, "48.66"),
        (1234.4, "1234"),
        (9999.7, "10000"),
        (11389.6, "11390"),
        (2.979e6, "2979000"),
        (0, "0"),
    ],
)
def test_a_measured_figure_has_no_power_of_ten(value, shown):
    """Speeds of a fast server are compared by eye: 9487 and 2.979e+04 cannot be."""
    assert formatting.amount(value) == shown


@pytest.mark.parametrize(
    ("value", "limits", "shown"),
    [
        *[(1.264, [], "1.26x"), (0.00342, [], "0.00342x"), (12.345, [], "12.35x"), (123.4, [], "123x")],
        *[(1234.5, [], "1230x"), (1.5e9, [], "1.5e+09x"), (math.inf, [], "inf"), (math.nan, [1.0], "-")],
        *[(0.9973, [1.0], "0.997x"), (0.99996, [1.0], "0.99996x"), (1.0000001, [1.0], "1.0000001x")],
        *[(1.0, [1.0], "1.00x"), (1.234, [1.0], "1.23x"), (0.9048, [0.9], "0.905x"), (0.000167, [1.0], "0.000167x")],
    ],
)
def test_a_ratio_has_the_digits_it_needs(value, limits, shown):
    """Two decimals around 1, else three digits, and more where a bound is near."""
    assert formatting.ratio(value, limits) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "1.00x"), (1.5, "1.50x"), (0.945, "0.945x"), (1.0005, "1.0005x"), (1 / 0.9, "1.1111x"), (250.0, "250.00x")],
)
def test_a_bound_is_not_rounded(value, shown):
    """What a test has claimed is shown with all its digits."""
    assert formatting.bound(value) == shown


def test_an_interval_that_bounds_nothing_is_said():
    """Before the first look there is a ratio and no interval; without pairs there is nothing."""
    assert formatting.with_interval(1.26, 0.0, math.inf) == "1.26x (no interval yet)"
    assert formatting.with_interval(math.nan, math.nan, math.nan) == "-"
    assert formatting.interval(0.5, math.inf) == "0.50 .. inf"


@given(st.text(max_size=40), st.integers(0, 50))
def test_a_text_that_is_too_long_loses_its_middle(text, width):
    """What fits stays as it is; of the rest beginning and end are kept."""
    short = formatting.elide(text, width)

    assert len(short) == min(len(text), width)
    assert short == text or width < 4 or (short[0], short[width // 2 : width // 2 + 1]) == (text[0], ".")
    assert formatting.elide("a_long_name_of_a_variant", 13) == "a_lon...riant"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (42, "42 s"), (420, "7 min"), (5 * 3600, "5 h"), (3 * 86400, "3 d"), (89, "89 s"), (90, "2 min")],
)
def test_a_duration_has_one_unit(seconds, shown):
    """Ages are read at a glance."""
    assert formatting.duration(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        *[(0, "0 MB"), (112_000, "0.1 MB"), (3_000_000, "3 MB"), (9_800_000, "9.8 MB"), (38_200_000, "38 MB")],
        *[(271_600_000, "272 MB"), (999_000_000, "999 MB"), (1_540_000_000, "1.5 GB")],
    ],
)
def test_a_size_is_decimal(count, shown):
    """Megabytes below a gigabyte, as packages and disks are counted; small sizes have a decimal."""
    assert formatting.size(count) == shown


def test_memory_is_binary():
    """As limits of containers and options of servers are written."""
    assert (formatting.mebibytes(48 * 2**20), formatting.mebibytes(2**19)) == ("48 MiB", "0.5 MiB")
    assert formatting.gibibytes(2**31) == "2.0 GiB"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00fc \u00d7 \u6587", "plain \u00fc \u00d7 \u6587"),
        ("\x1b[2J\r\x07\x9b1m\x7f", r"\x1b[2J\r\x07\x9b1m\x7f"),
        ("\u202egnp.exe\u2028\ud800", r"\u202egnp.exe\u2028\ud800"),
        ("a\nb\tc", r"a\nb\tc"),
    ],
)
def test_what_controls_a_terminal_is_shown_as_its_escape(text, shown):
    """Letters of every language stay; what moves the cursor, changes colours or turns the direction does not."""
    assert formatting.printable(text) == shown


def test_lines_of_a_message_stay_lines():
    """An error may quote several lines of a log; escape sequences among them are shown."""
    assert formatting.printable("one\n\ttwo\x1b[0m", lines=True) == "one\n\ttwo\\x1b[0m"


@pytest.mark.parametrize(("number", "shown"), [(0, "0 nodes"), (1, "1 node"), (3, "3 nodes")])
def test_one_alone_has_no_plural(number, shown):
    """One has the singular, every other number the plural."""
    assert formatting.quantity(number, "node") == shown


@pytest.mark.parametrize(
    ("number", "noun", "shown"),
    [
        (1, "process", "1 process"),
        (2, "process", "2 processes"),
        (1, "flush", "1 flush"),
        (3, "flush", "3 flushes"),
        (1, "temporary copy", "1 temporary copy"),
        (2, "temporary copy", "2 temporary copies"),
        (2, "day", "2 days"),
    ],
)
def test_a_noun_has_its_own_plural(number, noun, shown):
    """It depends on the end of the noun."""
    assert formatting.quantity(number, noun) == shown


def test_a_share_of_something_has_the_plural():
    """Whole numbers have no decimals, and a float of 1 is one."""
    assert [formatting.quantity(number, "core") for number in (1.0, 1.5, 2.0)] == ["1 core", "1.5 cores", "2 cores"]


def test_no_message_makes_its_own_plural():
    """``quantity`` is the only place that decides between one and many."""
    own = re.compile(r"""(['"])(e?s)?\1 if [^\n]*1\)? else (['"])(e?s)?\3|(['"])s\5 \* \(""")
    package = Path(formatting.__file__).parent

    assert own.search("""f"{n} node{'' if n == 1 else 's'}" """)
    assert own.search("""f"{n} node{'s' * (n > 1)}" """)
    assert [str(path) for path in package.rglob("*.py") if own.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("../../../../evil", "evil"),
        ("/etc/passwd", "etc_passwd"),
        ("..", "unnamed"),
        ("", "unnamed"),
        (".hidden", "hidden"),
        ("a b\n\x1b[31mc", "a_b_31mc"),
        ("flush_2.beats(default, by=0.1)", "flush_2.beats_default_by_0.1"),
        ("gr\u00f6\u00dfer", "gr_er"),
        ("x" * 300, "x" * 60),
    ],
)
def test_a_name_is_one_part_of_a_path(text, name):
    """Whatever a user writes: no other directory, no hidden file, no length that a file system refuses."""
    assert formatting.file_name(text) == name


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", "b", "c", "d"], "a, b, c, d"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
)
def test_a_long_list_is_cut(names, text):
    """The number of names that are left out is two or more."""
    assert formatting.some(names) == text


def test_a_wide_line_goes_on_below():
    """Two characters further in; what fits stays as it is, and words, empty lines and a pip command stay whole."""
    text = "  one two three\n\nfour\n/a/path/that/is/longer/than/that\nor pip install 'pytest-dbcluster[plots]' now"

    assert formatting.wrap(text, 12) == [
        "  one two",
        "    three",
        "",
        "four",
        "/a/path/that/is/longer/than/that",
        "or",
        "  pip install 'pytest-dbcluster[plots]'",
        "  now",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        (".5", 0.5),
        ("0.000001", 0.000001),
        ("5ms", 0.005),
        ("90s", 90),
        ("2m", 120),
        ("30min", 1800),
        ("1.5h", 5400),
        ("1d", 86400),
    ],
)
def test_a_time_has_its_unit(text, seconds):
    """A number without a unit is in seconds."""
    assert formatting.option_seconds("--db-wait", text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1 h", "1e3", "5w", "nan", "inf", "."])
def test_a_text_that_is_no_time_is_refused(text):
    """The error names the option and an example."""
    with pytest.raises(ConfigError, match=r"^--db-wait '.*': it accepts a time in ms, s, min, h or d, such as 90s"):
        formatting.option_seconds("--db-wait", text)


@pytest.mark.parametrize(
    ("path", "here", "shown"),
    [
        ("/home/me/shop/order.sql", "/home/me", "shop/order.sql"),
        ("/home/me", "/home/me", "."),
        ("/home/meadow", "/home/me", "/home/meadow"),
        ("/home", "/home/me", "/home"),
        ("/home/me", "/", "home/me"),
    ],
)
def test_a_path_is_shown_as_users_type_it(path, here, shown):
    """Relative to the working directory if it is below it, otherwise whole."""
    assert formatting.near(Path(path), Path(here)) == shown


@pytest.mark.parametrize(
    ("value", "text"), [(True, "ON"), (False, "OFF"), (1, "1"), (0.5, "0.5"), ("80 %", "80 %"), ("", "")]
)
def test_values_are_written_as_my_cnf_has_them(value, text):
    """Truth becomes ON and OFF, everything else its text."""
    assert formatting.option_text(value) == text


@pytest.mark.parametrize("name", ["--innodb-io-capacity", " INNODB_IO_CAPACITY ", "innodb_io_capacity"])
def test_names_are_written_with_underscores(name):
    """However they are spelt."""
    assert formatting.normal_option(name) == "innodb_io_capacity"

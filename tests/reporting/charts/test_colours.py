"""The colours of charts, for readers who see fewer of them, and for grey print."""

import itertools

import pytest

from pytest_dbcluster.reporting.charts import colours

# Linear RGB as seen without the cones for middle wavelengths (Machado, Oliveira and Fernandes 2009, severity 1).
DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)
DAY = {name: day for day, (name, _) in colours.THEMES.items()}
NIGHT = dict(colours.THEMES.values())


def linear(colour):
    """The linear RGB of ``#rrggbb``, from 0 to 1."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def times(matrix, vector):
    """A matrix times a vector."""
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def lab(rgb):
    """CIELAB of linear RGB: equal distances look about equally far apart."""
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (part / white for part, white in zip(times(TO_XYZ, rgb), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other):
    """How far apart two colours look with deuteranopia (CIE 1976); 2 is just seen."""
    seen = [lab([min(max(part, 0), 1) for part in times(DEUTERANOPIA, linear(colour))]) for colour in (one, other)]
    return sum((a - b) ** 2 for a, b in zip(*seen, strict=True)) ** 0.5


def contrast(one, other):
    """The contrast of two colours in grey print, from 1 to 21 (WCAG 2)."""
    light, dark = sorted((times(TO_XYZ, linear(colour))[1] for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [DAY, NIGHT], ids=["light", "dark"])
def test_colour_blind_readers_tell_variants_apart(theme):
    """Any two of seven variants are at least ten times the smallest difference that is seen apart."""
    named = {day: name for name, day in DAY.items()}
    shown = [theme[named[style.colour]] for style in colours.SERIES]

    assert min(distance(one, other) for one, other in itertools.combinations(shown, 2)) > 20


@pytest.mark.parametrize("theme", [DAY, NIGHT], ids=["light", "dark"])
def test_shaded_rounds_of_three_variants_are_told_apart(theme):
    """Their colours are mixed with the paper, as in the timeline: two blues would look alike."""

    def mixed(colour):
        parts = [[int(one[place : place + 2], 16) for place in (1, 3, 5)] for one in (colour, theme["--paper"])]
        return "#" + "".join(f"{round(0.16 * ink + 0.84 * paper):02x}" for ink, paper in zip(*parts, strict=True))

    named = {day: name for name, day in DAY.items()}
    shown = [mixed(theme[named[style.colour]]) for style in colours.SERIES[:3]]

    assert min(distance(one, other) for one, other in itertools.combinations(shown, 2)) > 5


@pytest.mark.parametrize("theme", [DAY, NIGHT], ids=["light", "dark"])
def test_verdicts_are_told_apart(theme):
    """Also the colours of a claim that holds and of one that is refuted."""
    shown = [theme[name] for name in ("--holds", "--refuted", "--open")]

    assert min(distance(one, other) for one, other in itertools.combinations(shown, 2)) > 15


def test_grey_print_tells_the_two_variants_of_a_claim_apart():
    """Candidate and baseline differ in lightness; all variants differ in marker and line as well."""
    first, second = colours.SERIES[:2]

    assert contrast(first.colour, second.colour) > 2
    for kind in ("colour", "marker", "line"):
        assert len({getattr(style, kind) for style in colours.SERIES}) == len(colours.SERIES)


@pytest.mark.parametrize("theme", [DAY, NIGHT], ids=["light", "dark"])
def test_text_can_be_read_on_its_background(theme):
    """Text has the contrast that WCAG asks for, marks at least that of graphics or an outline in the text's colour."""
    assert contrast(theme["--ink"], theme["--paper"]) > 12
    assert contrast(theme["--soft"], theme["--paper"]) > 4.5
    for name in ("--holds", "--refuted", "--open", "--blue", "--published"):
        assert contrast(theme[name], theme["--paper"]) > 3


def test_a_drawing_takes_its_colours_from_the_page():
    """Each colour becomes a variable, whose default is the colour itself."""
    assert colours.apply_theme(f"stroke: {colours.BLUE}") == "stroke: var(--blue, #0072b2)"
    assert f"--blue: {colours.BLUE};" in colours.variables(dark=False)
    assert "--blue: #3a8fd0;" in colours.variables(dark=True)


def test_an_eighth_variant_begins_again():
    """There are seven styles; a claim compares five variants at most, a published chart has seven."""
    assert colours.style(7) == colours.style(0)

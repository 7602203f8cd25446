"""The flame graph: its boxes are as wide as the time of their functions, and their colours say who takes more."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pytest_dbcluster.measuring.why.stacks import ComparedStack
from pytest_dbcluster.reporting.charts import flame
from pytest_dbcluster.reporting.charts.colours import BLUE, REFUTED

SVG = "{http://www.w3.org/2000/svg}"


def boxes(*stacks):
    """By name, the attributes of the box that has the colour; and the height of the drawing."""
    drawn = ET.fromstring(flame.svg([ComparedStack(tuple(names.split()), *seconds) for names, *seconds in stacks]))
    found = {
        group.findtext(f"{SVG}title").partition(":")[0]: {**group.findall(f"{SVG}rect")[1].attrib, "text": text}
        for group in drawn
        for text in [group.findtext(f"{SVG}text")]
    }
    return found, float(drawn.get("viewBox").split()[3])


def test_a_box_is_as_wide_as_its_time_on_both_variants():
    """It lies above its caller, within its width."""
    found, height = boxes(("run", 0.0, 1.0), ("run read", 1.0, 1.0), ("run sort", 0.0, 1.0))

    assert [float(found[name]["width"]) for name in (flame.WHOLE, "run", "read", "sort")] == [960, 960, 480, 240]
    assert float(found["sort"]["x"]) == float(found["read"]["x"]) + 480
    assert float(found["read"]["y"]) == float(found["run"]["y"]) - flame.ROW
    assert height == 3 * flame.ROW


def test_the_colour_says_which_variant_takes_more():
    """It is strong for a function of one variant alone, and faint for one with equal times."""
    found, _ = boxes(("more", 1.0, 2.0), ("less", 2.0, 1.0), ("equal", 1.0, 1.0), ("new", 0.0, 1.0))

    assert [found[name]["fill"] for name in ("more", "new", "less")] == [REFUTED, REFUTED, BLUE]
    shades = [float(found[name]["fill-opacity"]) for name in ("equal", "more", "new")]
    assert shades == [flame.FAINT, pytest.approx(0.32, abs=0.01), flame.STRONG]


def test_a_narrow_box_has_no_text():
    """A name that does not fit is cut in the middle; a box that nobody could see is left out."""
    found, height = boxes(("a_long_name_" * 20, 1.0, 1.0), ("small", 0.01, 0.01), ("none deeper", 1e-6, 1e-6))

    assert [found[name]["text"] for name in ("small",)] == [None]
    assert "..." in found["a_long_name_" * 20]["text"]
    assert ("none" in found, height) == (False, 2 * flame.ROW)


def test_names_of_functions_are_no_markup():
    """Templates of C++ have brackets in their names."""
    found, _ = boxes(("std::vector<int>", 1.0, 0.0))

    assert found["std"]["text"] == "std::vector<int>"


def test_nothing_is_drawn_without_stacks():
    """As for a run without perf."""
    assert flame.svg(()) is None

"""scripts/pictures.py: the pictures of the documentation from a stored run."""

from __future__ import annotations

import html
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.reporting.page import report_page
from pytest_dbcluster.reporting.tables import closing
from tests.support import browser as browsers
from tests.support.results import comparison, five_claims, results

ROOT = Path(__file__).resolve().parents[3]
CHROMIUM = pytest.mark.skipif(browsers.program() is None, reason=browsers.INSTALL)
GREEN, PLAIN = "\x1b[32m", "\x1b[0m"
MARK = (179, 18, 125)  # the colour of the numbers
CLAIMS = [
    f" {closing.DECIDED} ".center(100, "="),
    f"{GREEN}✓ holds  flush_2 is 1.84x as fast as galera3      mysqlslap write c50{PLAIN}",
    "         99.9 %: 1.18 .. 3.08   published 7.41x   1/2       ┼────●─────   4",
    f"{GREEN}{' 2 passed in 17.2s '.center(100, '=')}{PLAIN}",
]


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    found = importlib.util.spec_from_file_location("pictures", ROOT / "scripts" / "pictures.py")
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


def terminal(rounds):
    """What a terminal shows of a run with so many lines of progress."""
    head = [" test session starts ".center(100, "="), f"rootdir: {ROOT}", "collected 2 items"]
    return "\r\n".join([*head, *(f"pair {number}\rround {number}" for number in range(rounds)), *CLAIMS]) + "\r\n"


def lines_of(svg):
    """The texts of a picture, line by line."""
    rows = {}
    for place, said in re.findall(r'<text [^>]*y="([0-9.]+)"[^>]*clip-path[^>]*>(.*?)</text>', svg, re.DOTALL):
        rows.setdefault(float(place), []).append(html.unescape(said).replace("\xa0", " "))
    return ["".join(parts).rstrip("\n") for _, parts in sorted(rows.items())]


def test_a_long_run_is_cut_to_its_claims(script):
    """The command, three dots, and what the run ends with; progress is left out."""
    shown = lines_of(script.terminal_svg(terminal(60)))

    assert shown[:2] == ["$ pytest suites/galera -k 'flush and write'", "..."]
    assert [line.strip("= ") for line in shown[2:]] == [
        closing.DECIDED,
        "✓ holds  flush_2 is 1.84x as fast as galera3      mysqlslap write c50",
        "99.9 %: 1.18 .. 3.08   published 7.41x   1/2       ┼────●─────   4",
        "2 passed in 17.2s",
    ]


def test_a_short_run_is_whole_and_names_no_directory_of_this_machine(script):
    """A line that was written over shows its last text."""
    shown = lines_of(script.terminal_svg(terminal(2)))

    assert "rootdir: ~/pytest-dbcluster" in shown
    assert ["round 0" in shown, "pair 0" in "".join(shown)] == [True, False]
    assert str(ROOT) not in "".join(shown)


def test_a_picture_of_a_terminal_has_colours_and_loads_nothing(script):
    """Its fonts are those of the reader; two pictures of one text are the same."""
    made = script.terminal_svg(terminal(60))

    assert "@font-face" not in made
    assert re.findall(r"url\((?!#)", made) == []
    assert len(set(re.findall(r"\{ fill: (#[0-9a-f]{6})", made))) >= 2
    assert made == script.terminal_svg(terminal(60))


def test_a_program_runs_in_a_terminal_of_100_columns(script):
    """It sees a terminal, and its whole text is returned, also if it fails."""
    program = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns); sys.exit(1)"

    assert script.run_in_terminal([sys.executable, "-c", program]) == "True 100\r\n"


def test_each_number_is_explained(script, capsys):
    """As a numbered list of Markdown, for a page of the documentation."""
    assert script.main(["--numbers"]) == 0
    said = capsys.readouterr().out.splitlines()

    assert len(said) == len(script.NUMBERS)
    assert said[0] == "1. The answer in one sentence."
    assert all(re.fullmatch(rf"{number}\. [A-Z].*[^.]\.", line) for number, line in enumerate(said, 1))


def parts_of(path, colour):
    """The width of a picture, and how many of its pixels have this colour."""
    import numpy
    from PIL import Image

    with Image.open(path) as picture:
        pixels = numpy.asarray(picture.convert("RGB"), dtype=int)
    return pixels.shape[1], int((pixels == colour).all(axis=2).sum())


@CHROMIUM
def test_the_pictures_of_a_stored_run(script, tmp_path, capsys):
    """The page is 1200 pixels wide, and only the numbered one has boxes. A page with many claims has all elements."""
    directory = results(tmp_path / "run", five_claims()[:1] + [five_claims()[3]] * 3)
    assert report_page.make(directory).startswith("report: ")
    (tmp_path / "terminal.txt").write_text(terminal(60), newline="")
    given = ["--results", directory, "--terminal", tmp_path / "terminal.txt", "--output", tmp_path / "pictures"]

    assert script.main(list(map(str, given))) == 0
    assert capsys.readouterr().err == ""
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == [
        "page-annotated.png",
        "page.png",
        "run.svg",
    ]
    assert parts_of(tmp_path / "pictures" / "page.png", MARK) == (1200, 0)
    width, pixels = parts_of(tmp_path / "pictures" / "page-annotated.png", MARK)
    assert width == 1200
    assert pixels > 10_000


@CHROMIUM
def test_a_number_without_an_element_is_named(script, tmp_path, capsys):
    """The page of a comparison has no plot of all claims, and few claims have no contents."""
    directory = comparison(tmp_path / "run")
    assert report_page.make(directory).startswith("report: ")
    (directory / "terminal.txt").write_text(terminal(2), newline="")

    assert script.main(["--results", str(directory), "--output", str(tmp_path / "pictures")]) == 0
    said = capsys.readouterr().err
    missing = [
        number for number, (selector, _) in enumerate(script.NUMBERS, 1) if f"number {number} ({selector})" in said
    ]
    assert missing == [4, 9, 12]


def test_without_chromium_the_command_that_installs_it_is_named(script, monkeypatch, capsys):
    """Nothing is run before that."""
    monkeypatch.setattr(browsers, "program", lambda: None)

    assert script.main([]) == 1
    assert "apt-get install" in capsys.readouterr().err

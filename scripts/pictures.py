"""Make the pictures of the documentation: the terminal of a run, and its page.

- ``python scripts/pictures.py`` runs the claims in a terminal of 100 columns, then draws.
- ``python scripts/pictures.py --results DIR --terminal FILE`` draws an earlier run and its stored terminal text.
- ``python scripts/pictures.py --numbers`` prints what each number on the page means, as Markdown.

It writes run.svg, page.png and page-annotated.png. It needs Chromium (make tools) and the packages of the extra
``dev``.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for the browser of the tests

OUTPUT = ROOT / "docs" / "_static"
RESULTS = "reports/latest"  # that of the command
TERMINAL = "terminal.txt"  # the text of the terminal, in the results directory
COMMAND = ("pytest", "suites/galera", "-k", "flush and write")
SHOWN = "pytest suites/galera -k 'flush and write'"
COLUMNS, LINES = 100, 40  # of the terminal; a longer text is cut to its closing part
WIDTH, MARGIN, HIGHEST = 1200, 24, 1800  # pixels of the page
FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would load fonts from elsewhere
# What is numbered on the page: the element, and what it shows. Of several elements the first one counts, and of a claim
# those of the first claim.
NUMBERS: tuple[tuple[str, str], ...] = (
    ("h1", "the answer in one sentence"),
    (".counts, table.answers", "the claims by state; for a comparison, a row for each workload and metric"),
    ("header .facts", "the run: time, releases, machine, kernel, disk, commit, profile and command"),
    ("#overview figure.wider", "all claims in one plot: the ratio of each, with its interval"),
    ("#claim1 summary", "the answer to one claim in words"),
    ("#claim1 .figures", "the measured ratio with its interval, and the published ratio"),
    ("#claim1 .together table", "the median of each variant, and its rounds"),
    ("#claim1 figure.chart", "each round over time, and the interval at each look"),
    ("#claim1 .why", "the counters and resources that moved"),
    ("#claim1 .columns", "server variables that differ, nodes and durability"),
    ("#claim1 .command", "the command that repeats the test"),
    ("#contents", "the contents of a page with many claims"),
)
DRAW = """(marks => {
  const missing = [];
  for (const [number, selector] of marks) {
    const one = document.querySelector(selector);
    if (!one) {
      missing.push(number);
      continue;
    }
    const {left, top, width, height} = one.getBoundingClientRect();
    const box = document.createElement("div");
    box.className = "mark";
    box.style.cssText = `position: absolute; left: ${left + scrollX - 6}px; top: ${top + scrollY - 4}px;
      width: ${width + 12}px; height: ${height + 8}px; border: 2px solid #b3127d; border-radius: 5px;`;
    const label = document.createElement("span");
    label.textContent = number;
    label.style.cssText = `position: absolute; left: -30px; top: -2px; width: 24px; height: 24px; border-radius: 50%;
      background: #b3127d; color: #fff; font: 700 14px/24px "DejaVu Sans", sans-serif; text-align: center;`;
    box.append(label);
    document.body.append(box);
  }
  return missing;
})"""
# The lower end of what the picture of the page shows: the end of the first chart of a claim, or of the whole page.
BOTTOM = """(() => {
  const shown = [...document.querySelectorAll("#claim1 .command")].find(one => one.offsetParent !== null);
  return (shown || document.querySelector("main")).getBoundingClientRect().bottom + scrollY;
})()"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pictures; return 0, or 1 if something is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, metavar="DIR", help="an earlier run; without it the claims run now")
    parser.add_argument("--terminal", type=Path, metavar="FILE", help=f"its terminal text (default DIR/{TERMINAL})")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="DIR", help="default docs/_static")
    parser.add_argument("--numbers", action="store_true", help="print what the numbers mean, and draw nothing")
    given = parser.parse_args(arguments)
    if given.numbers:
        print(numbers())
        return 0
    from tests.support import browser

    if browser.program() is None:
        print(f"pictures: {browser.INSTALL}", file=sys.stderr)
        return 1
    results = given.results
    if results is None:
        results = ROOT / RESULTS
        text = run_in_terminal([str(ROOT / ".venv" / "bin" / COMMAND[0]), *COMMAND[1:], "--color=yes"])
        (results / TERMINAL).write_text(text)
    text = (given.terminal or results / TERMINAL).read_bytes().decode()  # with its carriage returns
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "run.svg").write_text(terminal_svg(text))
    missing = page_pictures(results / "index.html", given.output)
    for number in missing:
        print(f"pictures: the page has no element for number {number} ({NUMBERS[number - 1][0]})", file=sys.stderr)
    print(f"pictures: run.svg, page.png and page-annotated.png in {given.output}")
    return 0


def numbers() -> str:
    """What each number on the page means, as a numbered list of Markdown."""
    return "\n".join(f"{number}. {what[:1].upper()}{what[1:]}." for number, (_, what) in enumerate(NUMBERS, 1))


def run_in_terminal(command: Sequence[str]) -> str:
    """Run a command in a terminal of COLUMNS columns; return everything that it prints, and show it meanwhile.

    The command decides nothing here: a refuted claim has its place in a picture too.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm-256color"}
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux ends a terminal whose last program has ended with an error
            break
        if not part:
            break
        parts.append(part)
        sys.stderr.buffer.write(part)
        sys.stderr.flush()
    os.close(ours)
    process.wait()
    return b"".join(parts).decode(errors="replace")


def closing_part(text: str) -> str:
    """The terminal text from its first table of claims on, below the command. A text of up to LINES lines is whole."""
    from rich.text import Text

    from pytest_dbcluster.reporting.tables import closing

    lines = text.replace(str(ROOT), "~/pytest-dbcluster").replace("\r\n", "\n").rstrip().split("\n")
    prompt = f"\x1b[1m$ {SHOWN}\x1b[0m"
    if len(lines) <= LINES:
        return "\n".join([prompt, *lines])
    titles = set(closing.TITLES.values())
    plain = [Text.from_ansi(line).plain.strip("= ") for line in lines]
    first = next((number for number, line in enumerate(plain) if line in titles), len(lines) - LINES)
    return "\n".join([prompt, "...", *lines[first:]])


def terminal_svg(text: str) -> str:
    """The closing part of a terminal text as SVG, with its colours. It loads nothing from elsewhere."""
    from rich.console import Console
    from rich.terminal_theme import SVG_EXPORT_THEME
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(closing_part(text)), soft_wrap=False)
    made = console.export_svg(title="pytest", theme=SVG_EXPORT_THEME, unique_id="run")
    return FONT_FACES.sub("", made)


def page_pictures(page: Path, output: Path) -> list[int]:
    """Save the page as page.png, and with numbered boxes as page-annotated.png; return numbers without an element."""
    from tests.support.browser import Browser

    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            browser.open(page.resolve(), width=WIDTH)
            _picture(browser, output / "page.png", HIGHEST)
            browser.script("document.querySelector('#claim1 > details')?.setAttribute('open', '')")
            marks = [[number, selector] for number, (selector, _) in enumerate(NUMBERS, 1)]
            missing: list[int] = browser.script(f"{DRAW}({json.dumps(marks)})")
            _picture(browser, output / "page-annotated.png", browser.script(BOTTOM) + MARGIN)
        finally:
            browser.close()
    return missing


def _picture(browser: Any, path: Path, highest: float) -> None:
    """Save the top of the open page as PNG, at most so many pixels high."""
    height = min(highest, browser.script("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    path.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    sys.exit(main())

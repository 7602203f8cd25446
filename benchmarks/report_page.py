"""How long making the page of a results directory takes, for each 60 claims.

    python benchmarks/report_page.py [--runs 3] [--results reports/latest]

CPU seconds of this process, because another program on the machine must not change the figure.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks import ratios
from pytest_dbcluster.reporting.page import report_page, sources

TARGET, CLAIMS = 20.0, 60


def took(directory: Path) -> float:
    """CPU seconds of making the page once, scaled to 60 claims. Raises ConfigError for a directory without results."""
    read = sources.read_all([directory])
    began = time.process_time()
    report_page.html(read)
    return (time.process_time() - began) * CLAIMS / max(1, sum(len(source.claims) for source in read))


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 3, "pages")
    parser.add_argument("--results", type=Path, default=Path("reports/latest"), metavar="DIR", help="of a run")
    arguments = parser.parse_args()
    seconds = [took(arguments.results) for _ in range(arguments.runs)]
    figure = ratios.Figure.of(seconds)
    print(f"| CPU seconds for {CLAIMS} claims | {figure} | {ratios.target_text(figure.median, TARGET)} |")


if __name__ == "__main__":
    ratios.run(main)

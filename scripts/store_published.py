"""Store the claims of a run about published measurements, for the pages of ``docs/published``.

python scripts/store_published.py DIRECTORY...

DIRECTORY: results of a run, also of an interrupted one. A claim that is stored already is replaced. A directory that
does not exist is left out, because no claim of it was measured.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import published_claims  # noqa: E402  (it is beside the extensions of the site)
import published_results  # noqa: E402

from pytest_dbcluster.errors import ConfigError  # noqa: E402


def main(arguments: list[str], into: Path = published_results.DIRECTORY) -> int:
    """Store the claims of these directories; returns the exit status."""
    if not arguments:
        print(f"usage: {Path(__file__).name} DIRECTORY...", file=sys.stderr)
        return 2
    directories = [Path(name) for name in arguments if Path(name).is_dir()]
    known = published_claims.claims() if directories else []
    try:
        for directory in directories:
            print("\n".join(published_results.stored_lines(directory, known, into)))
    except ConfigError as error:
        print(f"store_published: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

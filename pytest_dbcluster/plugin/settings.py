"""Settings: the checked ``--db-...`` options of a run, as one value."""

from __future__ import annotations

import dataclasses
import math
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import registry, wait
from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import option_seconds
from pytest_dbcluster.hosts.given import remote_arguments, run_budget
from pytest_dbcluster.hosts.provisioner import parse_images
from pytest_dbcluster.spec import DEFAULT_RELEASE, PARITIES, PROFILES, ReleaseName, storage_profile

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.cnf_file import CnfFile
    from pytest_dbcluster.measuring.drawing.rules import Rules

# Every run of pytest loads this module if the plugin is installed, so functions import heavy modules.
# Seconds by profile. A round of paper may take 30 s and the first look needs 12 pairs, so 24 rounds take 720 s.
BUDGETS = {"quick": 120.0, "paper": 1200.0}
DEFAULT_PROVISIONER = "local"
DEFAULT_RESULTS = "reports/latest"  # below the root directory of the tests
FLAGS = (
    "--db-keep",
    "--db-strict",
    "--db-resume",
    "--db-history-strict",
    "--db-github",
    "--db-ec2-spot",
    "--db-why",
)  # without a value
PATHS, RELEASE = ("--db-cnf", "--db-cnf-root", "--db-host-keys", "--db-ssh-config"), "--db-release"  # with paths
OF_RUN = (
    "--db-results",
    "--db-resume",
    "--db-history",
    "--db-history-strict",
    "--db-github",
    "--db-trace",
    "--db-wait",
)  # a command that repeats one test has no such option
LEDGER = "ec2-cost.json"  # in the directory that the workers of a run share
DRAWN_SEED = "db_seed_was_drawn"  # set beside the option in a worker if the controller drew the seed


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every option of a run."""

    releases: tuple[ReleaseName, ...]
    """The releases to measure."""

    provisioner: str
    """Name of the provisioner."""

    images: Mapping[str, str]
    """The images of ``--db-image``, by release."""

    storage: str
    """The storage profile of clusters that name none; empty for the machine's disk."""

    profile: str
    """``quick`` or ``paper``."""

    parity: str
    """``vendor`` or ``normalised``."""

    below: CnfFile | None
    """The file of ``--db-cnf``."""

    cnf_root: Path | None
    """The directory that stands for the ``/`` of the host that my.cnf files came from."""

    fragments: Path
    """The directory of my.cnf fragments."""

    results: Path
    """The directory of results."""

    max_pairs: int
    """Maximum number of pairs of a claim."""

    budget: float
    """Maximum measured seconds of a claim."""

    event_budget: float
    """Maximum seconds of all repetitions of one measurement of events; infinite for no limit."""

    run_budget: float | None
    """Seconds of the whole run; None for no limit."""

    alpha: float
    """Probability of a wrong verdict of a claim, for each side."""

    seed: int
    """Seed of the orders of rounds."""

    strict: bool
    """Whether an inconclusive claim fails its test."""

    keep: bool
    """Whether the last clusters stay running."""

    lock_wait: float = wait.LOCK_SECONDS
    """Seconds that the run waits for a lock of another process."""

    elsewhere: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The arguments of the provisioners ssh and ec2."""

    moved: str = ""
    """The line about another run that has the requested results directory; empty if this run has it."""

    fixed_seed: bool = False
    """Whether the user chose the seed."""

    fixed_budget: bool = False
    """Whether the user chose the budget, so that no mark of a test counts."""

    why: bool = False
    """Whether extra rounds show what differs on the servers after each claim."""

    began: float = dataclasses.field(default_factory=time.monotonic)
    """The run's start, by ``time.monotonic``."""

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines of --db-host and --db-load-host, or the kind of instances; empty for this machine."""
        kinds = {"--db-host": "machines", "--db-load-host": "load_machines"}
        if "settings" in self.elsewhere:
            return tuple(self.elsewhere["settings"].machines)
        return tuple(f"{option} {one}" for option, kind in kinds.items() for one in self.elsewhere.get(kind, ()))

    def of_worker(self, began: float, shared: Path) -> Settings:
        """The settings of a worker of pytest-xdist. began: the start of the run. shared: a directory of all workers."""
        elsewhere = self.elsewhere
        if "settings" in elsewhere:  # one cap over the instances of all workers
            elsewhere = {**elsewhere, "settings": dataclasses.replace(elsewhere["settings"], ledger=shared / LEDGER)}
        return dataclasses.replace(self, began=began, elsewhere=elsewhere)

    def repeat_options(self, arguments: Sequence[object]) -> list[str]:
        """The ``--db-...`` options among these arguments, in their order, and the seed if it is missing."""
        options: list[str] = []
        value_follows = False
        for argument in map(str, arguments):
            if value_follows or argument.startswith("--db-"):
                options.append(argument)
            value_follows = argument.startswith("--db-") and "=" not in argument and argument not in FLAGS
        has_seed = any(option.startswith("--db-seed") for option in options)
        return options if has_seed else [*options, f"--db-seed={self.seed}"]

    @classmethod
    def read(cls, option: Any, root: Path) -> Settings:
        """The settings from pytest's options. Raises ConfigError for the first wrong option.

        option: pytest's namespace of options. root: the root directory of the tests.
        """
        from pytest_dbcluster.hosts.provisioner import module_of

        names = option.db_release or [DEFAULT_RELEASE]
        provisioner = option.db_provisioner or DEFAULT_PROVISIONER
        module_of(provisioner)
        results = root / (DEFAULT_RESULTS if option.db_results is None else option.db_results)
        _check(option)
        _check_history(option, results)
        elsewhere = remote_arguments(option, provisioner)
        return cls(
            releases=tuple(ReleaseName.parse(name) for name in names),
            provisioner=provisioner,
            images=parse_images(option.db_image or (), provisioner),
            storage=storage_profile(option.db_storage).name if option.db_storage else "",
            profile=option.db_profile,
            parity=option.db_parity,
            below=_below(option.db_cnf, option.db_cnf_root),
            cnf_root=Path(option.db_cnf_root) if option.db_cnf_root else None,
            fragments=root / "fixtures" / "mycnf",
            results=results,
            max_pairs=option.db_max_pairs,
            budget=_time("--db-budget", option.db_budget) or BUDGETS[option.db_profile],
            event_budget=_time("--db-event-budget", option.db_event_budget) or math.inf,
            run_budget=run_budget(_time("--db-run-budget", option.db_run_budget), elsewhere),
            alpha=option.db_alpha,
            seed=random_seed() if option.db_seed is None else option.db_seed,
            strict=option.db_strict,
            keep=option.db_keep,
            lock_wait=option_seconds("--db-wait", option.db_wait),
            elsewhere=elsewhere,
            fixed_seed=option.db_seed is not None and not getattr(option, DRAWN_SEED, False),
            fixed_budget=option.db_budget is not None,
            why=option.db_why,
        )

    def rules(self) -> Rules:
        """The options that limit the drawing of rounds."""
        from pytest_dbcluster.measuring.drawing.rules import Rules

        return Rules(
            self.seed,
            self.alpha,
            self.max_pairs,
            self.budget,
            self.event_budget,
            self.run_over,
            self._remaining_seconds,
            self.fixed_seed,
        )

    def _remaining_seconds(self) -> float:
        return math.inf if self.run_budget is None else self.run_budget - (time.monotonic() - self.began)

    def run_over(self) -> str:
        """Why the run must not start or wait for anything: its budget is spent. Empty while it may."""
        if self.run_budget is None or time.monotonic() - self.began < self.run_budget:
            return ""
        return f"the run's budget of {self.run_budget:g} s is spent (--db-run-budget)"


def without_paths(options: Sequence[str], here: Path, root: Path) -> list[str]:
    """The same options for any machine, without those of ``OF_RUN``.

    A path below ``root`` becomes relative to it; any other path keeps only its name: ``PATH/my.cnf``. here: the
    directory of relative paths.
    """
    shown: list[str] = []
    pending = ""
    for option in options:
        name, equals, value = (pending, "", option) if pending else option.partition("=")
        pending = "" if pending or equals or name in FLAGS else name
        if name in OF_RUN:
            continue
        if pending:
            shown.append(option)
            continue
        release, sign, directory = value.partition("=")
        if name in PATHS:
            value = _portable(value, here, root)
        elif name == RELEASE and sign:
            value = f"{release}={_portable(directory, here, root)}"
        shown.append(f"{name}={value}" if equals else value or option)
    return shown


def _portable(path: str, here: Path, root: Path) -> str:
    absolute = Path(os.path.normpath(here / path))
    return str(absolute.relative_to(root)) if absolute.is_relative_to(root) else f"PATH/{absolute.name}"


def random_seed() -> int:
    """64 random bits."""
    return secrets.randbits(64)


def _check(option: Any) -> None:
    """Raise ConfigError for the first option whose value is unknown or out of range."""
    if option.db_profile not in PROFILES:
        raise registry.unknown("profile", option.db_profile, PROFILES)
    if option.db_parity not in PARITIES:
        raise registry.unknown("parity", option.db_parity, PARITIES)
    if option.db_alpha not in critical_values.ALPHAS:
        known = " or ".join(f"{alpha:g}" for alpha in critical_values.ALPHAS)
        raise ConfigError(f"--db-alpha {option.db_alpha:g}: it must be {known}")
    if not option.db_max_pairs > 0:
        raise ConfigError(f"--db-max-pairs {option.db_max_pairs}: it accepts a number above 0")
    if option.db_seed is not None and option.db_seed < 0:
        raise ConfigError(f"--db-seed {option.db_seed}: it accepts 0 or more")
    if option.db_results is not None and not option.db_results.strip():
        raise ConfigError("--db-results: it accepts a directory, such as reports/latest")
    if option.db_trace is not None and not option.db_trace.strip():
        raise ConfigError("--db-trace: it accepts a file, such as trace.json")
    if option.db_max_pairs > critical_values.LOOKS[-1]:
        raise ConfigError(
            f"--db-max-pairs {option.db_max_pairs}: a claim draws {critical_values.LOOKS[-1]} pairs at most"
        )


def _time(option: str, text: str | None) -> float | None:
    """The seconds of an option that limits a time; None if it is not given. Raises ConfigError for 0."""
    seconds = None if text is None else option_seconds(option, text)
    if seconds == 0:
        raise ConfigError(f"{option} {text}: it accepts a time above 0")
    return seconds


def _check_history(option: Any, results: Path) -> None:
    """Raise ConfigError for options of the history that contradict each other, and for a file that runs remove."""
    if option.db_history is not None and not option.db_history.strip():
        raise ConfigError("--db-history: it accepts a file, such as reports/history.jsonl")
    if option.db_history_strict and option.db_history is None:
        raise ConfigError("--db-history-strict needs --db-history FILE, such as --db-history reports/history.jsonl")
    if option.db_history is None:
        return
    from pytest_dbcluster.reporting import results_directory

    file = Path(os.path.abspath(option.db_history))  # noqa: PTH100  (resolve() would follow links)
    if results_directory.removes(results, file):
        raise ConfigError(
            f"--db-history {option.db_history}: each run removes {file.name} of the results directory {file.parent}; "
            "choose a file outside of it, such as reports/history.jsonl"
        )


def _below(cnf: str | None, root: str | None) -> CnfFile | None:
    if not cnf:
        return None
    from pytest_dbcluster.clusters.servers.cnf_file import read

    return read(Path(cnf), Path(root) if root else None)

"""What becomes of each class of a log: a transaction file, or a reason why there is none."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import some
from pytest_dbcluster.workloads.digest.class_layout import layout
from pytest_dbcluster.workloads.digest.links import ClassFacts, find_links
from pytest_dbcluster.workloads.digest.log.sessions import COMMIT, ROLLBACK
from pytest_dbcluster.workloads.digest.log.statement_shapes import OTHER
from pytest_dbcluster.workloads.digest.log.transaction_classes import TransactionClass
from pytest_dbcluster.workloads.digest.schema.schema_tables import SchemaTables
from pytest_dbcluster.workloads.digest.schema.statement_roles import StatementRoles
from pytest_dbcluster.workloads.sql.language.statements import KNOWN, WRITING

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
WRITTEN, UNEXPLAINED, CONFLICT = "written", "unexplained", "ended by a conflict"
APART = "apart in the check"
RARE = "rare"
MOST_FILES = 60
RARE_SHARE = 0.0005  # of time and of transactions; rarer classes are not written
FEWEST = 10  # transactions of a class; links in fewer samples are chance
LACKING_SHARE = 0.01  # of time or transactions, from which a lacking table is an error


@dataclasses.dataclass
class ClassOutcome:
    """One class, and what became of it."""

    of: TransactionClass
    """The class."""

    status: str
    """One of the constants, or the reason why no file is written."""

    facts: ClassFacts | None = None
    """What is known of its parameters; None without a file."""

    file: str = ""
    """The name of its file; empty without one."""

    notes: list[str] = dataclasses.field(default_factory=list)
    """What a reader must know, or why nothing explains its keys."""

    weight: int = 0
    """Its weight in workload.toml; 0 if it is not there."""

    statements: Sequence[str] = ()
    """The statements of its file, without BEGIN and COMMIT."""


def choose_schema(classes: Sequence[TransactionClass], roles: Mapping[int, StatementRoles]) -> str:
    """The database with the most transactions whose tables are all in the schema."""
    counts: dict[str, int] = {}
    for one in classes:
        tables = [roles[shape] for shape in one.shapes]
        if any(each.tables for each in tables) and not any(each.unknown for each in tables):
            counts[one.schema] = counts.get(one.schema, 0) + one.count
    return max(counts, key=lambda name: counts[name]) if counts else ""


def outcomes(
    classes: Sequence[TransactionClass],
    roles: Mapping[int, StatementRoles],
    texts: Mapping[int, str],
    schema: SchemaTables,
) -> tuple[str, list[ClassOutcome]]:
    """The database of the workload, and its classes, those with the most time first.

    Raises ConfigError if the schema lacks tables of many transactions.
    """
    chosen = choose_schema(classes, roles)
    committed = [one for one in classes if one.ending == COMMIT]
    found = [ClassOutcome(one, _reason(one, chosen, roles, texts, committed)) for one in classes]
    seconds, count = sum(one.seconds for one in classes) or 1.0, sum(one.count for one in classes)

    def share(one: ClassOutcome) -> float:
        """Of the log's time or transactions, whichever is larger."""
        return max(one.of.seconds / seconds, one.of.count / count)

    many = [one.of for one in found if one.status.startswith("the schema lacks") and share(one) >= LACKING_SHARE]
    _refuse_lacking(many, count, roles)
    found.sort(key=lambda one: (-share(one), one.of.runs))
    kept = 0
    for one in found:
        if one.status:
            continue
        if kept == MOST_FILES or (kept and (share(one) < RARE_SHARE or one.of.count < FEWEST)):
            one.status = RARE
            continue
        kept += 1
        one.status = WRITTEN
        placed = layout(one.of)
        one.facts = ClassFacts(placed, roles, find_links(placed, roles, schema))
    _name_files(found, roles)
    return chosen, found


def _reason(
    one: TransactionClass,
    chosen: str,
    roles: Mapping[int, StatementRoles],
    texts: Mapping[int, str],
    committed: Sequence[TransactionClass],
) -> str:
    """Why a class becomes no file; empty if it becomes one."""
    statements = [roles[shape] for shape in one.shapes]
    unknown = list(dict.fromkeys(name for each in statements for name in each.unknown))
    if unknown and (one.schema in SYSTEM or any(_of_system(texts[shape]) for shape in one.shapes)):
        return "tables of the server"
    if one.schema and one.schema != chosen and chosen:
        return "another database"
    if unknown:
        return f"the schema lacks {some(unknown)}"
    if any(each.several for each in statements):
        return "several statements in one"
    if any(texts[shape] == OTHER for shape in one.shapes):
        return "too many different statements"
    verb = next((each.verb for each in statements if each.verb not in KNOWN or each.verb == "CALL"), "")
    if verb:
        return f"{verb} statements"
    writes = any(each.verb in WRITING for each in statements)
    if one.ending == ROLLBACK and writes and any(_begins(one, other) for other in committed):
        return CONFLICT
    return ""


def _of_system(text: str) -> bool:
    return bool(re.search(rf"\b(?:{'|'.join(SYSTEM)})`?\s*\.", text, re.I))


def _begins(one: TransactionClass, committed: TransactionClass) -> bool:
    """Whether a transaction that was rolled back is the begin of a more frequent one that commits."""
    return one.count < committed.count and committed.runs[: len(one.runs)] == one.runs


def _refuse_lacking(many: Sequence[TransactionClass], count: int, roles: Mapping[int, StatementRoles]) -> None:
    """Raise ConfigError if classes with many transactions lack tables. count: of all transactions."""
    if names := list(dict.fromkeys(name for one in many for shape in one.shapes for name in roles[shape].unknown)):
        raise ConfigError(
            f"the schema has no table {some(names)}, and {100 * sum(one.count for one in many) / count:.0f} % of the "
            "log's transactions use it: write the whole schema with mysqldump --no-data DATABASE > schema.sql"
        )


def _name_files(found: Sequence[ClassOutcome], roles: Mapping[int, StatementRoles]) -> None:
    """Name the files after their first statement that writes, or their first statement."""
    taken: set[str] = set()
    for one in found:
        if one.status != WRITTEN:
            continue
        statements = [roles[shape] for shape in one.of.shapes]
        first = next((each for each in statements if each.verb in WRITING), statements[0])
        table = first.target or (first.tables[0] if first.tables else "")
        base = re.sub(r"\W", "_", f"{first.verb}_{table}".lower().strip("_"), flags=re.ASCII)
        name, number = base, 2
        while name in taken or name in ("schema", "generate", "fit", "reset"):
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        one.file = f"{name}.sql"

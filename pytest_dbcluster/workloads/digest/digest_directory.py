"""From a log and a schema to a workload directory: the files of ``dbcluster init --workload --from``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report, quantity
from pytest_dbcluster.workloads.digest import class_outcomes, digest_report
from pytest_dbcluster.workloads.digest.class_outcomes import APART, UNEXPLAINED, WRITTEN, ClassOutcome
from pytest_dbcluster.workloads.digest.digest_report import LogDigest, UnfittedStatement
from pytest_dbcluster.workloads.digest.key_rules import KeyRules
from pytest_dbcluster.workloads.digest.links import ClassFacts
from pytest_dbcluster.workloads.digest.log.log_files import NO_STATEMENT, SLOW, LogFile, open_log
from pytest_dbcluster.workloads.digest.log.sessions import LogTotals, Sessions
from pytest_dbcluster.workloads.digest.recent_keys import find_recent
from pytest_dbcluster.workloads.digest.rows.fitting import fit_statements
from pytest_dbcluster.workloads.digest.rows.found_rows import FoundRows
from pytest_dbcluster.workloads.digest.schema.schema_tables import SchemaTables, read_schema
from pytest_dbcluster.workloads.digest.schema.statement_roles import StatementRoles, roles_of
from pytest_dbcluster.workloads.digest.stand_ins import StandIns
from pytest_dbcluster.workloads.digest.transaction_text import Inputs, ScriptText, script_of
from pytest_dbcluster.workloads.digest.value_domains import ValueDomains
from pytest_dbcluster.workloads.sql.language import lua_code, scripts

GAP = 0.001  # seconds: with long_query_time = 0, some statement is faster
WEIGHTS = 10_000
FIT = "fit.sql"
MANIFEST, SCHEMA = "workload.toml", "schema.sql"


@dataclasses.dataclass
class ReadLog:
    """A log that was read to its end, with the schema of its tables."""

    log: LogFile
    """The file."""

    sessions: Sessions
    """What was read of it."""

    schema: SchemaTables
    """The tables of its database."""

    roles: dict[int, StatementRoles]
    """The roles of the parameters, by number of the shape, of the statements of all classes."""

    texts: dict[int, str]
    """The text of each shape, by its number."""


def read_log(log: Path, schema: SchemaTables) -> ReadLog:
    """Read a whole log. Raises ConfigError for a log without statements, or with gaps."""
    sessions = Sessions()
    with open_log(log) as file:
        sessions.read(file.entries())
    refuse_gaps(file, sessions.totals)
    texts = sessions.shapes.texts()
    used = {shape for one in sessions.classes.found.values() for unit in one.runs for shape in unit}
    roles = {shape: roles_of(texts[shape], schema) for shape in used}
    return ReadLog(file, sessions, schema, roles, texts)


def refuse_gaps(log: LogFile, totals: LogTotals) -> None:
    """Raise ConfigError for a log without statements, or one that lacks the fast ones."""
    if not totals.statements:
        raise ConfigError(NO_STATEMENT.format(path=log.path))
    if log.kind == SLOW and totals.shortest >= GAP:
        raise ConfigError(
            f"{log.path} lacks fast statements: the fastest took {1000 * totals.shortest:.3g} ms, "
            "so long_query_time was above 0. Set long_query_time = 0 and min_examined_row_limit = 0, on MariaDB also "
            "log_slow_filter = '' and log_slow_rate_limit = 1, reconnect the application, and take the log again"
        )


def write_digest(
    log: Path, schema: Path, directory: Path, *, keep_literals: bool, progress: Report
) -> tuple[LogDigest, ReadLog, dict[str, str]]:
    """Digest a log; return what became of it, the log, and the files of the directory, name -> text.

    Raises ConfigError for a log or a schema that cannot be used.
    """
    tables, schema_text = read_schema(schema)
    progress(f"reading {log}")
    read = read_log(log, tables)
    progress(f"{quantity(read.sessions.totals.statements, 'statement')}: finding classes, links and distributions")
    classes = list(read.sessions.classes.found.values())
    database, found = class_outcomes.outcomes(classes, read.roles, read.texts, tables)
    facts = _facts_of(found, log)
    find_recent(facts, tables)
    explained = [each for each in facts if KeyRules(each, tables).explained] or facts
    domains = ValueDomains(explained, tables)
    found_rows = FoundRows(explained, domains)
    found_rows.number_texts()
    stand_ins = StandIns(domains, keep=keep_literals)
    texts = {number: _without_database(text, database) for number, text in read.texts.items()}
    inputs = Inputs(texts, domains, stand_ins, {name: _variable(name) for name in tables.tables})
    made = {one.file: script_of(one.facts, inputs) for one in found if one.facts}
    variables = {inputs.rows[name]: rows for name, rows in domains.rows.items() if rows} | stand_ins.variables
    for one in found:
        if one.facts:
            _decide_status(one, made[one.file], variables, directory.name)
    fit, refused = fit_statements(domains, stand_ins, found_rows)
    used = set(re.findall(r":(\w+)", "\n".join([*fit, *(line for script in made.values() for line in script.lines)])))
    texts_of_log = {name: value for name, value in stand_ins.variables.items() if name in used}
    _weigh(found)
    digest = LogDigest(
        read.log, read.sessions.totals, found, read.sessions.classes.rare, read.sessions.classes.rare_seconds,
        domains.rows, domains.reasons, texts_of_log, keep_literals, database, tables,
        _unfitted_of_files(found, found_rows.unfitted_statements(refused), texts),
    )  # fmt: skip
    files = {one.file: _script_text(one, made[one.file], digest) for one in found if one.facts}
    files[SCHEMA] = schema_text
    if fit:
        files[FIT] = "\n".join(["-- Generated rows get the values by which transactions search.", *fit]) + "\n"
    files[MANIFEST] = manifest(digest, fits=bool(fit))
    files[digest_report.REPORT] = digest_report.markdown(digest)
    return digest, read, files


def _facts_of(found: Sequence[ClassOutcome], log: Path) -> list[ClassFacts]:
    """What is known of the classes with a file. Raises ConfigError if there is none."""
    if facts := [one.facts for one in found if one.facts]:
        return facts
    reasons = list(dict.fromkeys(one.status for one in found))
    raise ConfigError(f"{log} has no transaction that a workload can have: {', '.join(reasons) or 'no statements'}")


def _unfitted_of_files(
    found: Sequence[ClassOutcome], statements: Sequence[tuple[ClassFacts, int, str]], texts: Mapping[int, str]
) -> list[UnfittedStatement]:
    """The statements of written files to which generated rows are not fitted."""
    names = {id(one.facts): one.file for one in found if one.status == WRITTEN}
    return [
        UnfittedStatement(names[id(facts)], texts[shape], reason)
        for facts, shape, reason in statements
        if id(facts) in names
    ]


def _variable(table: str) -> str:
    name = re.sub(r"\W", "_", table, flags=re.ASCII)
    return f"t_{name}" if name[:1].isdigit() else name


def _without_database(text: str, database: str) -> str:
    """The text of a shape without the name of its database before tables."""
    if not database or database not in text:
        return text
    return re.sub(rf"(?<![\w.`])(?:`{re.escape(database)}`|{re.escape(database)})\s*\.\s*(?=[\w`])", "", text)


def _decide_status(one: ClassOutcome, script: ScriptText, variables: Mapping[str, object], name: str) -> None:
    """Decide whether a class can run, from its unexplained keys and the language of files."""
    if script.unexplained:
        one.status, one.notes = UNEXPLAINED, list(dict.fromkeys(script.unexplained))
        return
    one.notes, one.statements = script.notes, script.statements
    try:
        parsed = scripts.parse(one.file.removesuffix(".sql"), f"{name}/{one.file}", "\n".join(script.lines))
        lua_code.compile_scripts([(parsed, 1)], dict(variables), prepared=True)  # type: ignore[arg-type]
    except ConfigError as error:
        one.status, one.notes = UNEXPLAINED, [f"the language of transaction files refuses it: {error}"]


def _weigh(found: Sequence[ClassOutcome]) -> None:
    written = [one for one in found if one.status == WRITTEN]
    total = sum(one.of.count for one in written)
    for one in written:
        one.weight = one.of.count if total <= WEIGHTS else max(1, round(WEIGHTS * one.of.count / total))


def _script_text(one: ClassOutcome, script: ScriptText, digest: LogDigest) -> str:
    share = digest.share(one.of.seconds, one.of.statements + one.of.controls)
    total = sum(each.of.count for each in digest.classes)
    head = [
        f"-- {digest_report.percent(share)} of the log's {digest.measure}, "
        f"{digest_report.percent(one.of.count / total)} of its transactions ({one.of.count})."
    ]
    head += [f"-- {note}" for note in dict.fromkeys(script.notes)]
    return "\n".join([*head, *script.lines]) + "\n"


def leave_out(digest: LogDigest, directory: Path, outcome: ClassOutcome, reason: str) -> None:
    """Take a transaction out of ``workload.toml``. digest.md gets the reason."""
    outcome.status, outcome.weight, outcome.notes = APART, 0, [reason]
    (directory / MANIFEST).write_text(manifest(digest, fits=(directory / FIT).exists()), encoding="utf-8")
    (directory / digest_report.REPORT).write_text(digest_report.markdown(digest), encoding="utf-8")


def _reset(digest: LogDigest) -> str:
    """``reset`` of workload.toml: new rows are found by their primary keys."""
    targets = {
        roles.target
        for one in digest.runnable if one.facts
        for run in one.facts.layout.runs
        for shape in run.unit
        if (roles := one.facts.roles[shape]).target
    }  # fmt: skip
    known = [digest.tables.get(name) for name in targets]
    return "surplus" if all(table and table.primary for table in known) else "none"


def manifest(digest: LogDigest, *, fits: bool) -> str:
    """The text of workload.toml. fits: whether there is a fit.sql."""
    lines = [f"# Made from {digest.log.path.name}; digest.md says what it covers.", "transactions = ["]
    lines += [f'    "{one.file}@{one.weight}",' for one in digest.runnable]
    lines += [f'    # "{one.file}": {one.status}, see digest.md' for one in digest.refused]
    lines.append("]")
    lines += [f'after_load = ["{FIT}"]'] if fits else []
    lines.append(f'reset = "{_reset(digest)}"')
    lines += ["", "# Rows that are generated, by table.", "[rows]"]
    lines += [f"{_key(name)} = {rows}" for name, rows in digest.rows.items() if rows]
    lines += ["", "[variables]"]
    lines += [f"{_variable(name)} = {rows}" for name, rows in digest.rows.items() if rows]
    if digest.stand_ins:
        words = "texts of the log" if digest.kept_literals else "stand-ins for texts of the log: fill them in"
        lines += [f"# {words[0].upper()}{words[1:]}."]
        lines += [f"{name} = {_toml(value)}" for name, value in digest.stand_ins.items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: str) -> str:
    escaped = "".join(
        f"\\u{ord(each):04x}" if ord(each) < 32 or ord(each) == 127 else each
        for each in value.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped.encode("utf-8", "replace").decode()}"'

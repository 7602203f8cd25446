"""The comparison of a run's log with the log that it comes from."""

from __future__ import annotations

from pytest_dbcluster.workloads.digest import digest_check
from pytest_dbcluster.workloads.digest.digest_check import CheckedFigure
from pytest_dbcluster.workloads.digest.digest_directory import read_log, write_digest
from pytest_dbcluster.workloads.digest.schema.schema_tables import read_schema
from tests.workloads.digest.logs import SCHEMA, shop, slow, write


def compared(path, first, second):
    """The figures of a log and of the log of its run."""
    schema = write(path / "schema.sql", SCHEMA)
    found, read, _ = write_digest(
        write(path / "first", slow(first)), schema, path / "shop", keep_literals=False, progress=lambda line: None
    )
    return digest_check.compare(found, read, read_log(write(path / "second", slow(second)), read_schema(schema)[0]))


def test_a_run_as_its_log_fits_in_every_figure(tmp_path):
    """Statements by their kind, and rows."""
    figures = compared(tmp_path, shop(400), shop(300, seed=2))

    assert {figure.name for figure in figures} == {
        "Com_insert",
        "Com_select",
        "Rows_sent",
        "Rows_examined",
        "Rows_affected",
    }
    assert all(figure.fits for figure in figures)


def test_other_rows_are_found(tmp_path):
    """With the figure that differs."""
    other = [(text, {**how, "examined": 40}) if "status = " in text else (text, how) for text, how in shop(400)]
    figures = compared(tmp_path, shop(400), other)

    assert [figure.name for figure in figures if not figure.fits] == ["Rows_examined"]


def test_what_is_not_in_the_workload_does_not_count(tmp_path):
    """Statements that the run's own checks send."""
    figures = compared(tmp_path, shop(400), [*shop(400), *["SELECT COUNT(*) FROM items"] * 999])

    assert all(abs(figure.difference) < 1e-9 for figure in figures)


def transactions(path, first, second):
    """The figures of each transaction of a log and of the log of its run."""
    schema = write(path / "schema.sql", SCHEMA)
    found, read, _ = write_digest(
        write(path / "first", slow(first)), schema, path / "shop", keep_literals=False, progress=lambda line: None
    )
    run = read_log(write(path / "second", slow(second)), read_schema(schema)[0])
    return digest_check.compare_each(found, read, run)


def test_the_transaction_that_differs_is_named(tmp_path):
    """With the figure in both logs."""
    other = [(text, {**how, "examined": 40}) if "status = " in text else (text, how) for text, how in shop(400)]
    found = digest_check.responsible(transactions(tmp_path, shop(400), other))

    assert [(one.files, how) for one, how in found] == [
        ("select_orders.sql", "Rows_examined is 5 in the log, 40 in the check")
    ]


def test_differences_that_do_not_matter_are_not_named(tmp_path):
    """All figures of a mean transaction agree within 10 %."""
    first = next(number for number, (text, _) in enumerate(shop(400)) if "status = " in text)
    other = [(text, {**how, "sent": 9}) if number == first else (text, how)
             for number, (text, how) in enumerate(shop(400))]  # fmt: skip

    assert digest_check.responsible(transactions(tmp_path, shop(400), other)) == []


def test_lines_name_what_is_apart():
    """In percent of the log."""
    lines = digest_check.lines([CheckedFigure("Rows_sent", 2.0, 2.1), CheckedFigure("Rows_examined", 10.0, 15.0)])

    assert lines == [
        "a transaction        log        run",
        "Rows_sent          2.000      2.100    +5.0 %",
        "Rows_examined     10.000     15.000   +50.0 %  more than 10 % apart",
    ]

"""The messages about files of results as users read them: files that cannot be read, written or shared."""

import errno
import json
import os
from pathlib import Path

from pytest_dbcluster.reporting import results_lock, schema
from pytest_dbcluster.reporting.documents.run_document import FILE, read_run, run_text
from pytest_dbcluster.reporting.page import sources
from pytest_dbcluster.reporting.unwritten import Unwritten
from tests.support import golden
from tests.support.records import record
from tests.support.run_documents import run_document

WHOLE = schema.claim_line(record(), "a.csv", None, None)


def changed(**fields):
    """The line of a claim with other fields."""
    return json.dumps({**json.loads(WHOLE), **fields}).encode() + b"\n"


def unreadable(directory, name, read, content):
    """The message about a file with this content."""
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(content)
    return golden.message_of(read, directory)


def test_the_messages_about_lines_of_claims(tmp_path):
    """They are those of the golden file, which also has those about ``run.json`` and results directories."""
    one_round = json.loads(WHOLE)["rounds"]["flush_2"][0]
    with_ledger = {"flush_2": [{**one_round, "ledger_line": 3}]}
    lines = {
        "a newer format": changed(format=4),
        "an older format": changed(format=2),
        "the oldest format": changed(format=1),
        "a format that never was": changed(format=0),
        "no format": b"[1, 2]\n",
        "another text": b"what is this\n",
        "a torn line": WHOLE[:400],
        "a wrong type": changed(seed="many"),
        "a missing field": changed(verdict={}),
        "a missing file of ledgers": changed(ledgers_file="rounds/01.jsonl"),
        "a ledger without a file": changed(rounds=with_ledger),
    }
    documents = {"a newer format": b'{"format": 9}', "a torn file": run_text(run_document())[:200]}
    empty, allure, only_run = (tmp_path / name for name in ("empty", "results/allure-results", "only_run"))
    allure.mkdir(parents=True)
    empty.mkdir()
    only_run.mkdir()
    (only_run / FILE).write_bytes(run_text(run_document(tests=())))
    other = {"a missing directory": tmp_path / "none", "another directory": empty, "a directory of Allure": allure}

    golden.compare(
        "results_files",
        {
            **{
                f"claims.jsonl: {case}": unreadable(tmp_path / "claims", schema.CLAIMS, schema.read_claims, line)
                for case, line in lines.items()
            },
            **{
                f"run.json: {case}": unreadable(tmp_path / "run", FILE, read_run, content)
                for case, content in documents.items()
            },
            **{f"a report of {case}": golden.message_of(sources.read, path) for case, path in other.items()},
            "a report of a run without an ended test": golden.message_of(sources.read, only_run),
            "a report of one directory twice": golden.message_of(sources.read_all, [only_run, only_run]),
        },
        {tmp_path: "TMP"},
    )


def test_the_messages_about_a_results_directory(tmp_path):
    """They are those of the golden file: it is in use, it is a file, or a disk is full."""
    (tmp_path / "file").write_text("")
    held = results_lock.take(tmp_path / "latest", [], alone=False, option="--db-results")
    second = results_lock.take(tmp_path / "latest", [], alone=False, option="--db-results")
    lost = Unwritten()
    for name in ("a.csv", "b.csv", "c.csv", "d.csv"):
        with lost.note(Path(name)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with lost.note_chart(Path("a.svg")):
        raise ValueError("no axes")
    messages = {
        "another run writes into it": second.line,
        "another run writes into it, and its results are needed": golden.message_of(
            results_lock.take, tmp_path / "latest", [], alone=True, option="--db-results"
        ),
        "it is a file": golden.message_of(results_lock.take, tmp_path / "file", [], alone=False, option="--db-results"),
        "files that were not written": "\n".join(lost.lines()),
    }
    held.release()
    second.release()

    golden.compare("results_directory", messages, {tmp_path: "TMP"})

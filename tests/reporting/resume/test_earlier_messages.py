"""The lines about answers of an earlier run as users read them."""

import json
import time

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.records import CurveRecord, Reading
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.reporting.resume.digests import LOAD, MACHINE
from pytest_dbcluster.reporting.resume.earlier import Earlier, Key, curve_key_of
from tests.support import golden
from tests.support.curves import curve, point
from tests.support.records import record
from tests.support.run_documents import run_document


def answers(number, tmp_path, curves=()):
    """So many answers of an earlier run, and these curves."""
    made = {Key("test_a", f"claim {place}"): record(claim_id=f"claim {place}") for place in range(number)}
    return Earlier(tmp_path / "latest", run_document(), made, curves=list(curves))


def sweep(drawn):
    """A curve of two points, drawn to its end or not."""
    made: CurveRecord = curve((point(1, "a"), point(4, "a")), drawn=drawn)
    return made


def test_the_messages_of_a_run_that_continues_another(tmp_path):
    """They are those of the golden file: what there is to take over, what became of it, and why nothing is."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(run_document().began))
    some = answers(4, tmp_path, [sweep(20)])
    keys = list(some.answers)
    made = some.answers[keys[0]]
    some.take(keys[0], Reading("test_a", "", made.asserted, made.verdict.outcome, made.verdict.reason, made.message))
    some.outdated[keys[1]] = [LOAD, MACHINE]
    some.kept.add(curve_key_of(some.curves[0]))
    directory = tmp_path / "old"
    directory.mkdir()
    line = json.loads(schema.claim_line(record(), "a.csv", None, None))
    (directory / schema.CLAIMS).write_text(json.dumps(line) + "\n")

    golden.compare(
        "resume",
        {
            "answers": answers(2, tmp_path).line,
            "answers and curves": answers(1, tmp_path, [sweep(20), sweep(0)]).line,
            "no answers": answers(0, tmp_path).line,
            "what became of them": "\n".join(some.lines(3)),
            "claims without ids": golden.message_of(earlier.read, directory),
        },
        {tmp_path: "TMP", began: "DATE"},
    )

"""The messages of the history as users read them: warnings of drift, lines that cannot be read, accepted changes."""

import dataclasses

from pytest_dbcluster.reporting.history import guard, history_file
from pytest_dbcluster.reporting.history.history_file import History
from pytest_dbcluster.reporting.history.record_history import add_run
from pytest_dbcluster.reporting.unwritten import Unwritten
from tests.support import golden
from tests.support.histories import CLAIM, entries

STEADY = [1.84, 1.83, 1.85, 1.84, 1.83, 1.85, 1.84, 1.83]


def judge(before, new):
    """The lines of the drift guard about a new run."""
    return "\n".join(guard.lines(guard.judge(History((*before, *new)), ["run08"])))


def test_the_messages_of_the_history(tmp_path):
    """They are those of the golden file."""
    before = entries(STEADY, anchor=1000.0)
    slow = {name: value / 1.5 for name, value in before[0].medians.items()}
    results = tmp_path / "results"
    results.mkdir()
    path = tmp_path / "history.jsonl"
    history_file.add(path, [*before, *entries([1.1], claim_id="test_x::test_y | a.beats(b) | tpcc")])
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b'[]\n{"kind": "claim"}\n{"kind": "claim", "format": 99}\nx\ny\n')
    elsewhere = tmp_path / "elsewhere.jsonl"
    history_file.add(elsewhere, [dataclasses.replace(entry, machine="64 x another CPU") for entry in before])
    asked = {
        "without a reason": (CLAIM, "run08", " "),
        "an unknown claim": ("test_z", "run08", "a new disk"),
        "a part of two claims": ("test_", "run08", "a new disk"),
        "an unknown run": (CLAIM, "other", "a new disk"),
    }

    golden.compare(
        "history",
        {
            "the ratio drifted": judge(before, entries([1.2], first=8)),
            "the machine was busy": judge(before, entries([1.2], first=8, busy="other programs take 1.5 of 2 cores")),
            "both variants are slower": judge(before, entries([1.84], first=8, anchor=1000.0, medians=slow)),
            "too few runs": judge(before[:2], entries([1.84], first=8)),
            "a run on this machine": "\n".join(add_run(path, results, entries([1.84], first=8), Unwritten()).lines),
            "runs on another machine": "\n".join(
                add_run(elsewhere, results, entries([1.84], first=8), Unwritten()).lines
            ),
            "lines that cannot be read": "\n".join(history_file.read(torn).problems),
            "a directory": golden.message_of(history_file.read, tmp_path),
            **{f"accept {case}": golden.message_of(history_file.accept, path, *how) for case, how in asked.items()},
        },
        {tmp_path: "TMP"},
    )

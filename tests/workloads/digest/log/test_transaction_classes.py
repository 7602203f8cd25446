"""Classes: equal sequences of statements, loops, and samples in constant memory."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.digest.log import transaction_classes
from pytest_dbcluster.workloads.digest.log.log_files import Figures
from pytest_dbcluster.workloads.digest.log.transaction_classes import Classes, runs_of

FIGURES = Figures(0.1, 1, 1, 0)


def add(classes, *sequence, value="1"):
    """Count a transaction of these shapes, each with one value."""
    classes.add("shop", "COMMIT", sequence, [(value,)] * len(sequence), [FIGURES] * len(sequence), 0, [])


@pytest.mark.parametrize(
    ("sequence", "runs"),
    [
        ("", []),
        ("abc", ["a", "b", "c"]),
        ("abbbbc", ["a", "b*4", "c"]),
        ("ababab", ["ab*3"]),
        ("xabcabcy", ["x", "abc*2", "y"]),
        ("aabaab", ["aab*2"]),
    ],
)
def test_what_repeats_itself_is_one_run(sequence, runs):
    """The longest repetition counts, with its shortest unit."""
    units, copies = runs_of([ord(each) for each in sequence])

    assert [
        "".join(map(chr, unit)) + (f"*{count}" if count > 1 else "") for unit, count in zip(units, copies, strict=True)
    ] == runs


def test_a_loop_is_one_class_whatever_its_turns_are():
    """The samples have the number of turns."""
    classes = Classes()
    for turns in (1, 2, 5):
        add(classes, 0, *[1] * turns, 2)
    (one,) = classes.found.values()

    assert (one.count, one.runs) == (3, ((0,), (1,), (2,)))
    assert [sample.copies for sample in one.samples] == [(1, 1, 1), (1, 2, 1), (1, 5, 1)]


def test_samples_are_drawn_from_all_transactions():
    """Their number is bounded, and late transactions are among them."""
    classes = Classes()
    for number in range(80_000):
        add(classes, 0, value=str(number))
    (one,) = classes.found.values()
    late = sum(int(sample.literals[0][0]) >= 40_000 for sample in one.samples)

    assert one.count == 80_000
    assert len(one.samples) == transaction_classes.MOST_SAMPLES
    assert 1800 < late < 2200


def test_rare_classes_are_dropped_and_counted(monkeypatch):
    """The frequent ones stay."""
    monkeypatch.setattr(transaction_classes, "MOST_CLASSES", 10)
    classes = Classes()
    for number in range(100):
        add(classes, 1000)
        add(classes, number)

    assert classes.found["shop", "COMMIT", ((1000,),)].count == 100
    assert len(classes.found) <= 10
    assert sum(one.count for one in classes.found.values()) + classes.rare == 200
    assert classes.rare_seconds == pytest.approx(0.1 * classes.rare)


def test_a_long_text_is_kept_as_its_length():
    """So samples stay small."""
    classes = Classes()
    add(classes, 0, value=f"'{'x' * 5000}'")
    (one,) = classes.found.values()

    assert one.samples[0].literals == [("'\x005000",)]

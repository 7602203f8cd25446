"""The memory of a digest does not grow with its log."""

from __future__ import annotations

import gc
import random
import tracemalloc

from pytest_dbcluster.workloads.digest.log import sessions, statement_shapes, transaction_classes
from pytest_dbcluster.workloads.digest.log.log_files import Figures, LogEntry
from pytest_dbcluster.workloads.digest.log.sessions import Sessions

# What is kept at most, small enough for short logs.
LIMITS = {
    sessions: {"MOST_SESSIONS": 20},
    statement_shapes: {"MOST_FORMS": 100, "MOST_SHAPES": 100, "MOST_TEXT": 10_000},
    transaction_classes: {"MOST_CLASSES": 40, "MOST_KNOWN": 100, "MOST_SEQUENCES": 1000, "MOST_SAMPLES": 50,
                          "FEWEST_SAMPLES": 5, "VALUES": 200, "ALL_VALUES": 2000, "MOST_HELD": 4000},
}  # fmt: skip


def entries(transactions):
    """Transactions of new connections without an end; half of them have statements that no other one has."""
    drawn = random.Random(1)
    for number in range(transactions):
        texts = ["UPDATE t SET a = 5 WHERE id = 7", f"SELECT a FROM t WHERE id IN ({number}, 8, 9)"]
        if number % 2:
            ids = ", ".join(map(str, range(drawn.randrange(100))))
            columns = ", ".join(f"c{drawn.randrange(999)}" for _ in range(drawn.randrange(1, 20)))
            texts += [f"SELECT {columns} FROM t", f"DELETE FROM t WHERE id IN ({ids})", f"SELECT '{'x' * number}'"]
            drawn.shuffle(texts)
        for text in ("BEGIN", *texts, "COMMIT"):
            yield LogEntry(number, "Query", text, "shop", Figures(0.001, 1, 1, 0), 9)


def held(transactions):
    """The largest number of bytes that reading a log holds."""
    gc.collect()
    tracemalloc.start()
    try:
        read = Sessions()
        read.read(entries(transactions))
        return tracemalloc.get_traced_memory()[1], read
    finally:
        tracemalloc.stop()


def test_a_longer_log_needs_no_more_memory(monkeypatch):
    """Also if its statements, their order, their lists and its connections are always new."""
    for module, limits in LIMITS.items():
        for name, value in limits.items():
            monkeypatch.setattr(module, name, value)
    held(500)  # fills caches, such as that of regular expressions
    (short, _), (long, read) = held(500), held(3000)

    assert long < 1.6 * short  # 1.10 to 1.30 seen for 2500
    assert len(read.shapes) <= 101
    assert sum(one.count for one in read.classes.found.values()) + read.classes.rare == 3000
    other = read.shapes.shape_of(statement_shapes.OTHER).number
    assert any(other in unit for one in read.classes.found.values() for unit in one.runs)

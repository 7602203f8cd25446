"""Published figures: read from TOML, and their ratio beside the measured one."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.published import Published
from tests.support.resolved import resolved

ROOT = Path(__file__).parents[2]
TEXT = """\
title = "Some parameters"
[columns.default]
write = [0.9, 0.8, 1.0]
key = [0.2]
[columns.faster]
note = "not a row"
write = [0.3, 0.2, 0.4]
"""


@pytest.fixture
def root(tmp_path):
    """A project with one published file."""
    (tmp_path / "fixtures" / "published").mkdir(parents=True)
    (tmp_path / "fixtures" / "published" / "some.toml").write_text(TEXT)
    return tmp_path


def test_the_ratio_is_of_speed(root):
    """The ratio of speeds is the inverse of the ratio of published seconds."""
    found = Published.read(root, "some", columns={})

    assert found.title == "Some parameters"
    assert found.ratio(resolved("faster", a="1"), resolved("default"), "throughput", "write") == pytest.approx(3.0)


def test_a_variant_without_options_is_the_default_column(root):
    """A variant without options uses the column ``default``; a variant with options does not."""
    found = Published.read(root, "some", columns={})

    assert found.ratio(resolved("faster", a="1"), resolved("galera3"), "throughput", "write") == pytest.approx(3.0)
    assert found.ratio(resolved("faster", a="1"), resolved("other", a="2"), "throughput", "write") is None


def test_names_may_differ_from_the_columns(root):
    """The test's mark maps variants to columns."""
    found = Published.read(root, "some", columns={"flush_2": "faster"})

    assert found.ratio(resolved("flush_2", a="1"), resolved("default"), "throughput", "write") == pytest.approx(3.0)


@pytest.mark.parametrize("mode", ["key", "read", ""])
def test_a_missing_cell_has_no_ratio(root, mode):
    """A missing cell in either column gives no ratio."""
    found = Published.read(root, "some", columns={})

    assert found.ratio(resolved("faster", a="1"), resolved("default"), "throughput", mode) is None


def test_an_unknown_file_lists_the_known_ones(root):
    """The error for an unknown file suggests the most similar name."""
    with pytest.raises(ConfigError) as caught:
        Published.read(root, "sone", columns={})

    assert all(fact in str(caught.value) for fact in ("'sone'", "known: some", "did you mean some?"))


def test_an_unknown_column_lists_the_known_ones(root):
    """A mark that names an unknown column raises ConfigError."""
    found = Published.read(root, "some", columns={"flush_2": "fastr"})

    with pytest.raises(ConfigError) as caught:
        found.ratio(resolved("flush_2", a="1"), resolved("default"), "throughput", "write")
    assert all(fact in str(caught.value) for fact in ("'fastr'", "known: default, faster", "did you mean faster?"))


def test_a_file_without_columns_is_refused(root):
    """A file without seconds for each mode raises ConfigError when a mark names it."""
    (root / "fixtures" / "published" / "other.toml").write_text('title = "Latency"\n')

    with pytest.raises(ConfigError) as caught:
        Published.read(root, "other", columns={})
    assert all(fact in str(caught.value) for fact in ("'other'", "[columns.NAME]", "seconds for each mode"))


def test_the_tables_of_the_galera_suites_can_be_read():
    """Six columns and a default, each with seconds above zero for every mode."""
    found = Published.read(ROOT, "galera-parameters-2022", columns={})

    assert {"default", "flush_2", "slave_threads_4", "buffer_pool", "io_capacity_3000"} <= set(found.cells)
    assert all({"key", "read", "write", "mixed", "update"} <= set(rows) for rows in found.cells.values())
    assert all(min(cell) > 0 for rows in found.cells.values() for cell in rows.values())


def test_a_cell_may_be_an_average_alone(root):
    """A cell may have an average without minimum and maximum."""
    file = root / "fixtures" / "published" / "other.toml"
    file.write_text('title = "x"\n[columns]\nslow = { write = 0.4 }\nfast = { write = 0.1, read = 2.0 }\n')
    found = Published.read(root, "other", columns={})

    assert found.ratio(resolved("fast"), resolved("slow"), "throughput", "write") == pytest.approx(4.0)
    assert found.seconds(resolved("slow"), "read") == ()


FIGURES = """\
title = "More nodes"
[reads]
gain_over_one = { "2" = 0.50, "4" = 0.80 }
[columns.one]
paused = 0.64
[columns.sixteen]
paused = 0.16
[findings]
latency_of_1_over_16 = 1.27
text = ["words"]
"""


@pytest.fixture
def figures(tmp_path):
    """A project whose published file gives gains instead of seconds."""
    (tmp_path / "fixtures" / "published").mkdir(parents=True)
    (tmp_path / "fixtures" / "published" / "nodes.toml").write_text(FIGURES)
    return tmp_path


@pytest.mark.parametrize(
    ("place", "ratio"),
    [
        ("reads.gain_over_one.2", 1.5),
        ("findings.latency_of_1_over_16", 1.27),
        (("columns.sixteen.paused", "columns.one.paused"), 0.25),
        (("reads.gain_over_one.4", "reads.gain_over_one.2"), 1.2),
    ],
)
def test_a_figure_is_a_gain_a_ratio_or_a_quotient(figures, place, ratio):
    """Figures replace seconds; metrics without a figure have no published ratio."""
    found = Published.read(figures, "nodes", columns={}, figures={"goodput": place})

    assert found.ratio(resolved("two"), resolved("one"), "goodput", "") == pytest.approx(ratio)
    assert found.ratio(resolved("two"), resolved("one"), "p95", "") is None


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("reads.gain_over_two.2", "has no 'reads.gain_over_two.2': at 'gain_over_two' there is gain_over_one"),
        ("reads.gain_over_one.2.x", "at 'x' there is a value"),
        ("findings.text", "'findings.text' is ['words']; it must be a number other than 0"),
    ],
)
def test_a_figure_that_is_not_there_says_what_is(figures, place, words):
    """A mark with a wrong key raises ConfigError that names the known ones."""
    with pytest.raises(ConfigError) as caught:
        Published.read(figures, "nodes", columns={}, figures={"goodput": place})

    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "keywords", "words"),
    [
        ((), {}, 'the mark of test_a.py::test_it is written published("FILE", table=N, columns={name: column}, '),
        (("nodes",), {"columns": ["one"]}, 'the mark of test_a.py::test_it is written published("FILE", '),
        (("nodes",), {"collumns": {}}, "unknown argument of the mark published 'collumns'; known: columns, figures, "),
        (("../../elsewhere",), {}, "unknown published measurement '../../elsewhere'; known: nodes"),
        ((5,), {}, "unknown published measurement 5; known: nodes"),
    ],
)
def test_a_wrong_mark_is_one_sentence(figures, arguments, keywords, words):
    """A name that leads to another directory is unknown too."""
    (figures / "elsewhere.toml").write_text(FIGURES)
    mark = types.SimpleNamespace(args=arguments, kwargs=keywords)
    item = types.SimpleNamespace(nodeid="test_a.py::test_it", get_closest_marker=lambda name: mark)
    with pytest.raises(ConfigError) as caught:
        Published.of(item, figures)

    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("name", ["galera-node-count", "galera-applier-threads"])
def test_the_published_files_without_seconds_are_readable(name):
    """Those that the suites of scaling and applier threads name."""
    places = {
        "galera-node-count": "sysbench_simple.gain_over_one_galera_node.2",
        "galera-applier-threads": "findings.throughput_gain_of_16",
    }

    assert Published.read(ROOT, name, columns={}, figures={"goodput": places[name]}).figures["goodput"] > 1


@pytest.mark.parametrize("number", [-1, 2, True, "0"])
def test_a_sentence_is_one_of_the_findings(root, number):
    """It is printed beside the measured ratio; another number is an error that says how many there are."""
    found = Published.read(ROOT, "drbd-latency-2012", columns={}, sentence=1)
    assert found.lines == [f'published: "{found.sentence}" ({found.title})']
    assert found.sentence.startswith("sync_binlog=1: more clients do not hide the round trip")
    assert Published.read(root, "some", columns={}).lines == []

    (root / "fixtures/published/words.toml").write_text('title = "t"\n[findings]\ntext = ["one", "two"]\n')
    with pytest.raises(ConfigError, match=r"'words' has 2 sentences in \[findings\] text, and sentence="):
        Published.read(root, "words", columns={}, sentence=number)

"""The options of a test run in pytest's help and in pytest's errors."""

from __future__ import annotations

import argparse
import re

import pytest

from pytest_dbcluster.plugin.command_line import add_options, hints

GROUPS = [
    "what to measure",
    "how long, and how sure",
    "where",
    "machines, with the provisioner ssh",
    "instances, with the provisioner ec2",
    "results and history",
    "other options",
]


def test_the_help_of_pytest_has_the_options_in_groups(pytester):
    """Each option stands in one group, and pytest shows the groups with their titles."""
    titles = []

    def group(title):
        titles.append(title)
        return argparse.ArgumentParser().add_argument

    add_options(group)
    text = pytester.runpytest_inprocess("--help").stdout.str()

    assert titles == [f"database clusters: {title}" for title in GROUPS]
    shown = {title: text.index(f"\n{title}:\n") for title in titles}
    assert list(shown.values()) == sorted(shown.values())
    where = text[shown[titles[2]] : shown[titles[3]]]
    assert re.findall(r"^  (--db-[a-z-]+)", where, re.MULTILINE) == ["--db-provisioner", "--db-image", "--db-storage"]


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("--allure", "  --allure: an option of `dbcluster report DIR --allure`, *pytest --alluredir DIR*"),
        ("--db-provisoner=vm", "  --db-provisoner: did you mean --db-provisioner[?]"),
        ("--db-buget", "  --db-buget: did you mean --db-budget[?]"),
    ],
)
def test_an_unknown_option_gets_a_hint(pytester, word, hint):
    """It stands in pytest's own usage error."""
    result = pytester.runpytest_inprocess(word)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*unrecognized arguments: {word}", hint])


@pytest.mark.parametrize("words", [[], ["--db-seed=5", "-k", "flush"], ["--db-zzzzzzzzzz"], ["--alluredir=x"]])
def test_other_words_get_no_hint(words):
    """Known options, words of other plugins, and options that do not resemble ours."""
    assert hints(words) == {}

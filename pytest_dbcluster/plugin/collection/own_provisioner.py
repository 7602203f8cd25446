"""Tests that name the provisioner they need: a run of only such tests uses it without ``--db-provisioner``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioner import module_of
from pytest_dbcluster.plugin.settings import DEFAULT_PROVISIONER

MARK = "provisioner"
MARK_HELP = (
    f"{MARK}(name): where the clusters of a measuring test run without --db-provisioner, such as vm; it is skipped "
    "among tests with another provisioner"
)


def provisioner_of(item: pytest.Item) -> str:
    """The provisioner that the mark of a test names; the default one without a mark.

    Raises ConfigError for a wrong mark.
    """
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return DEFAULT_PROVISIONER
    if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], str):
        raise ConfigError(f'wrong mark of {item.nodeid}; usage: {MARK}("vm")')
    return mark.args[0]


def choose(measuring: Sequence[pytest.Item]) -> str:
    """The provisioner of a run of these tests: the one that all of them name, or the default one.

    This marks tests with another provisioner to be skipped; the reason has the command that runs them. Raises
    ConfigError for a wrong mark.
    """
    names = {item: provisioner_of(item) for item in measuring}
    for name in {*names.values()} - {DEFAULT_PROVISIONER}:
        module_of(name)
    run = next(iter(names.values())) if len({*names.values()}) == 1 else DEFAULT_PROVISIONER
    for item, name in names.items():
        if name != run:
            path = item.nodeid.partition("::")[0]
            folder = str(PurePosixPath(path).parent)
            where = path if folder == "." else folder
            item.add_marker(
                pytest.mark.skip(
                    reason=f"it needs --db-provisioner {name}, unlike other tests of this run; run it separately: "
                    f"pytest {shlex.quote(where)}"
                )
            )
    return run

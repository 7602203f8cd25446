"""Public calls with wrong arguments: one sentence that shows how the call is written."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.calls import check_arguments
from pytest_dbcluster.errors import ConfigError
from tests.support.facts import missing


@check_arguments("fast.beats(slow, by=0.1)", instead={"measure": "metric"})
def beats(self, other, by=0.0, *, metric=None):
    """A claim."""
    return (other, by, metric)


@check_arguments('Load("write", threads=4)')
@dataclasses.dataclass(frozen=True)
class Load:
    """A workload."""

    mode: str
    threads: int = 1


@pytest.mark.parametrize(
    ("arguments", "keywords", "reason", "instead"),
    [
        ((1, 2), {"within": 3}, "no argument within=", "write by= in place of within="),
        ((1, 2), {"measure": 3}, "no argument measure=", "write metric= in place of measure="),
        ((1, 2), {"metrik": 3}, "no argument metrik=", "write metric= in place of metrik="),
        ((1, 2), {"zzz": 3}, "no argument zzz=", ""),
        ((1, 2, 3, 4), {}, "too many positional arguments", ""),
        ((1,), {}, "missing a required argument: 'other'", ""),
    ],
)
def test_a_wrong_call_shows_the_right_one(arguments, keywords, reason, instead):
    """With Python's reason, and the argument that was probably meant."""
    with pytest.raises(ConfigError) as caught:
        beats(*arguments, **keywords)

    assert missing(caught.value, "fast.beats(...): ", reason, instead, "usage: fast.beats(slow, by=0.1)") == []
    assert ("in place of" in str(caught.value)) is bool(instead)


def test_a_right_call_is_the_call_itself():
    """Its result, its name and its docstring are those of the function."""
    assert beats(0, 1, by=2, metric="p95") == (1, 2, "p95")
    assert (beats.__name__, beats.__doc__) == ("beats", "A claim.")


def test_errors_inside_of_a_call_are_its_own():
    """Only the arguments of the call itself are explained."""

    @check_arguments("f(1)")
    def f(number):
        return number + "1"

    with pytest.raises(TypeError, match="unsupported operand"):
        f(1)


def test_a_class_is_called_too():
    """A decorated dataclass stays one."""
    assert Load("write") == Load("write", 1) == dataclasses.replace(Load("read"), mode="write")
    with pytest.raises(ConfigError) as caught:
        Load("write", thread=2)

    facts = ("no argument thread=", "write threads= in place of thread=", 'usage: Load("write", threads=4)')
    assert missing(caught.value, "Load(...): ", *facts) == []

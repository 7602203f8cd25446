"""Records and the documents that extend them: fields move from one to the other by their names."""

import pytest

from pytest_dbcluster.reporting.records import ClaimSubject, CurvePoint, fields_of
from tests.support.curves import point
from tests.support.records import record


def test_fields_are_taken_by_name():
    """A part of a record has the values of the record."""
    made = record()
    subject = ClaimSubject(**fields_of(ClaimSubject, made))

    assert (subject.text, subject.load, subject.repeat) == (made.text, made.load, made.repeat)


def test_a_field_may_be_replaced():
    """All others keep their values."""
    made = point(4, "a")

    assert CurvePoint(**fields_of(CurvePoint, made, value="four")).value == "four"
    assert fields_of(CurvePoint, made, value="four") == fields_of(CurvePoint, made) | {"value": "four"}


def test_a_missing_field_is_an_error():
    """Nothing is guessed for it."""
    with pytest.raises(AttributeError, match="median"):
        fields_of(CurvePoint, record(), value=1, variant="a")

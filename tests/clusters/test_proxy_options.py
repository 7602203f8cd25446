"""Options of proxies: a closed vocabulary with defaults and units."""

from __future__ import annotations

import pytest

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.proxy import proxy_class
from pytest_dbcluster.clusters.proxy_options import CHECKS, SECONDS, ProxyOption, read_options
from pytest_dbcluster.errors import ConfigError
from tests.support import golden
from tests.support.facts import missing

KNOWN = (
    ProxyOption("cut", True, "What."),
    ProxyOption("wait", 2, "What.", SECONDS, 0.5, 60),
    ProxyOption("tries", 3, "What.", CHECKS, 1, 10),
)


def test_options_that_are_not_given_have_their_defaults():
    """Each option has a value."""
    assert read_options("one", KNOWN, {}) == {"cut": True, "wait": 2, "tries": 3}
    assert read_options("one", (), {}) == {}


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"cut": "off"}, "cut", False),
        ({"cut": "1"}, "cut", True),
        ({"wait": "0.5"}, "wait", 0.5),
        ({"tries": "10"}, "tries", 10),
    ],
)
def test_a_text_has_a_value(given, name, value):
    """Switches, seconds and whole numbers."""
    assert read_options("one", KNOWN, given)[name] == value


WRONG = {
    "unknown": ({"trys": "2"}, ("'trys'", "proxy one", "cut (ON), wait (2 s), tries (3 checks)", "mean tries")),
    "a switch": ({"cut": "maybe"}, ("cut=maybe", "ON or OFF")),
    "seconds": ({"wait": "fast"}, ("wait=fast", "seconds from 0.5 to 60")),
    "not a number": ({"wait": "nan"}, ("wait=nan", "seconds from 0.5 to 60")),
    "too short": ({"wait": "0.4"}, ("wait=0.4", "seconds from 0.5 to 60")),
    "a broken number": ({"tries": "2.5"}, ("tries=2.5", "whole numbers from 1 to 10")),
    "too many": ({"tries": "11"}, ("tries=11", "whole numbers from 1 to 10")),
}


@pytest.mark.parametrize(("given", "facts"), WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_refused(given, facts):
    """The message has the option and the accepted values, or all options with their defaults."""
    with pytest.raises(ConfigError) as caught:
        read_options("one", KNOWN, given)

    assert missing(caught.value, *facts) == []


def test_a_proxy_without_options_accepts_none():
    """It says so by name."""
    with pytest.raises(ConfigError, match="proxy mysql_router has no options, got proxy_options fall"):
        read_options("mysql_router", (), {"fall": "2"})


@pytest.mark.parametrize("name", registry.names("proxy"))
def test_each_default_is_accepted(name):
    """The default of an option lies in its own range, and has a sentence."""
    options = proxy_class(name).options

    for option in options:
        text = ("ON" if option.default else "OFF") if option.accepts == "ON or OFF" else f"{option.default:g}"
        assert option.read(text, name) == option.default
        assert option.what.endswith(".")
    assert len({option.name for option in options}) == len(options)


def test_golden_messages_about_proxy_options():
    """They are those of the golden file."""
    of = proxy_class("haproxy").options
    wrong = {"unknown": {"failback": "OFF"}, "a switch": {"fail_back": "never"}, "a number": {"check_timeout": "5"}}
    messages = {title: golden.message_of(read_options, "haproxy", of, given) for title, given in wrong.items()}
    golden.compare("proxy_options", messages)

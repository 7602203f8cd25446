"""Reasons: each text that ends or voids a claim leads to its meaning."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pytest_dbcluster import reasons
from pytest_dbcluster.reasons import REASONS, Effect

PACKAGE = Path(reasons.__file__).parent
LEAST = 4  # words: shorter texts are parts of a sentence
# Where reasons are made: folders whose functions say in their docstring that they return one,
ROOMS = ("claims", "rounds", "measuring", "testbed")
SAYS = re.compile(r"(Return why|Why|The reason|Say (that|which)|That|AWS's notice)\b")
# functions of these names anywhere, functions that join several reasons, and calls of these errors.
NAMES = {"void", "void_reason", "why_lost", "notice", "late_start", "run_over"}
JOINING = {"_decide", "_too_close", "drain", "_judge", "over", "_run_and_read", "_on_path", "shared_cores"}
ERRORS = {"Inconclusive", "SeriesVoid", "held_error", "LockHeld"}
# Two refuse a claim before it draws a round, with what to write in the test; one says why a rate was lowered.
OTHERS = {"refuses", "not_across", "too_high"}


def filled(node):
    """The text of a string or an f-string, with ``x`` for each value; None for another expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
    return None


def texts(node):
    """The texts of four words or more in some code, without docstrings."""
    if (text := filled(node)) is not None:
        values = [part for part in getattr(node, "values", ()) if isinstance(part, ast.FormattedValue)]
        return [text] * (len(text.split()) >= LEAST) + [one for part in values for one in texts(part.value)]
    body = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
        body = [child for child in body if child is not node.body[0]]
    return [one for child in body for one in texts(child)]


def gives_reasons(function, room):
    """Whether a function returns the text of a reason."""
    if function.name in OTHERS:
        return False
    says = SAYS.match(ast.get_docstring(function) or "")
    return function.name in NAMES | JOINING or (room in ROOMS and bool(says))


@pytest.fixture(scope="module")
def collected():
    """(place, text) of every text in the package that is a reason, or a part of one, in their order."""
    return sorted(set(reasons_of_the_code()))


def reasons_of_the_code():
    """The same, as they stand in the code."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        for node in ast.walk(ast.parse(path.read_text())):
            name = ""
            if isinstance(node, ast.FunctionDef) and gives_reasons(node, place.parts[0]):
                name = node.name
            elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in ERRORS:
                name = "raise"
            if name and place.name != "reasons.py":
                yield from ((f"{place}:{name}", text) for text in texts(node))


# Texts without a reason: parts of a sentence, frames around a reason, a statement for a server.
FRAMES = re.compile(
    r"[,;:] |x: x(; nothing was (drawn|started for it)| cannot be decided: x)$|x; nothing was started$"
    r"|x: the race cannot be decided: x$|an extra round is void: x$"
    r"|SELECT @@GLOBAL|another run that starts servers$|machines that others use: x$|x % of a round$"
    r"|x, x of x rounds \(x\)$|x were void: x$"
)


def fits(reason, text):
    """Whether a text of the code, whose values are ``x``, is one of a reason's forms, or begins or ends one."""
    pattern = ".+?".join(map(re.escape, re.split(r"\bx\b", text)))
    return reason.matches(text) or any(re.search(pattern, form) for form in reason.texts)


def test_reasons_are_collected_from_every_room(collected):
    """The list is not empty for any of the places that make reasons."""
    places = {place.split("/")[0] for place, _ in collected}

    assert places >= {*ROOMS, "clusters", "hosts", "plugin", "system", "workloads"}
    assert len(collected) > 50


def test_every_reason_of_the_code_has_a_meaning(collected):
    """A reader of the message finds on the page what has happened, and what to do."""
    named = [one for one in collected if not FRAMES.match(one[1])]

    assert [one for one in named if not any(fits(reason, one[1]) for reason in REASONS)] == []


@pytest.mark.parametrize("form", [form for reason in REASONS for form in reason.texts])
def test_every_form_of_a_reason_is_made_by_the_code(collected, form):
    """No entry outlives the text that it explains."""
    [reason] = [one for one in REASONS if form in one.texts]

    assert [place for place, text in collected if fits(reason, text)]


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_an_example_leads_to_its_reason(reason):
    """The example is such a text, and no other kind of reason with the same effect claims it."""
    found = reasons.find(reason.example)

    assert reason in found
    assert [one.name for one in found if one.effect is reason.effect and one is not reason] in ([], ["group-changed"])


def test_several_reasons_of_one_message_are_found():
    """A message joins them with semicolons."""
    message = (
        "budget of 20 s of measured time used (--db-budget); a verdict needs at least 12 pairs, which take 48 s; "
        "the machine was busy: in the median round other programs take 1.5 of 2 cores: end the other programs"
    )

    assert [one.name for one in reasons.find(message)] == ["budget-used", "budget-below-first-look", "busy-machine"]
    assert reasons.find("no reason at all") == []


def test_reasons_have_distinct_names_and_full_sentences():
    """Each has a name for its anchor, a meaning and a remedy that end in a full stop."""
    assert len({reason.name for reason in REASONS}) == len(REASONS)
    assert [one.name for one in REASONS if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one.name)] == []
    assert [one.name for one in REASONS if not (one.meaning.endswith(".") and one.remedy.endswith("."))] == []
    assert {reason.effect for reason in REASONS} == set(Effect)


@pytest.fixture
def at_home(monkeypatch):
    """The environment of a run that is not a CI job."""
    for name in reasons.CI:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("at_home")
def test_a_checkout_has_the_page_as_a_file(tmp_path, monkeypatch):
    """It is the built page, or the guide that names every reason."""
    assert (reasons.DOCS / reasons.IN_CHECKOUT[1]).is_file()
    assert Path(reasons.address(REASONS[:2])) in [reasons.DOCS / name for name in reasons.IN_CHECKOUT]
    assert reasons.address([]) == ""
    monkeypatch.setattr(reasons, "DOCS", tmp_path)
    for name in reversed(reasons.IN_CHECKOUT):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()

        assert reasons.address(REASONS[:2]) == str(tmp_path / name)


def test_an_installed_package_has_the_page_on_its_site(monkeypatch):
    """The address has the anchor of a single reason; without a site it is the name of the page."""
    links = ["Source, https://example.org/code", "Documentation, https://example.org/docs/"]
    monkeypatch.setattr(reasons, "DOCS", Path("/nowhere"))
    monkeypatch.setattr(reasons.importlib.metadata, "metadata", lambda name: Links(links))

    assert reasons.address(REASONS[:1]) == "https://example.org/docs/reference/messages.html#reason-budget-used"
    assert reasons.address(REASONS[:2]) == "https://example.org/docs/reference/messages.html"
    links.clear()
    assert reasons.address(REASONS[:2]) == "docs/how-to/inconclusive.md in the source of pytest-dbcluster"


@pytest.mark.parametrize("variable", reasons.CI)
@pytest.mark.usefixtures("at_home")
def test_a_ci_job_shows_no_path_of_its_machine(monkeypatch, variable):
    """Its page is read elsewhere: it has the address of the site, or the name of the page, which is no link."""
    links = ["Documentation, https://example.org/docs/"]
    monkeypatch.setattr(reasons.importlib.metadata, "metadata", lambda name: Links(links))
    monkeypatch.setenv(variable, "true")
    text = REASONS[0].example

    assert reasons.advice(text).link == "https://example.org/docs/reference/messages.html#reason-budget-used"
    links.clear()
    assert (reasons.advice(text).address, reasons.advice(text).link) == (reasons.NAME, "")
    monkeypatch.setenv(variable, "")
    assert Path(reasons.address(REASONS[:1])).is_file()


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("/docs/how to/a.md", "file:///docs/how%20to/a.md"),
        ("https://example.org/a.html#reason-b", "https://example.org/a.html#reason-b"),
        ('http://example.org/"> a', "http://example.org/%22%3E%20a"),
        ("javascript:alert(1)", ""),
        ("", ""),
    ],
)
def test_advice_has_a_link_to_files_and_web_pages(monkeypatch, address, link):
    """Other addresses are no links, and no character of a link ends an attribute."""
    monkeypatch.setattr(reasons, "address", lambda found: address)
    advice = reasons.advice("cap of 12 pairs; budget of 20 s of measured time used (--db-budget)")

    assert (advice.address, advice.link) == (address, link)
    assert advice.text.startswith('If the message says "needs about N pairs in all", repeat the printed command, ')
    assert "Then claim same_as or no_slower_than, or another margin. Take longer rounds in the test" in advice.text
    assert str(advice) == f"{advice.text} {address}".rstrip()
    assert reasons.advice("no reason at all") is None


class Links(list):
    """The links of a package."""

    def get_all(self, name):
        """All of them, or None."""
        return list(self) or None

"""The output on a terminal and in a log while a test measures."""

import dataclasses
import types

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_dbcluster.measuring.drawing.progress import RoundProgress
from pytest_dbcluster.reporting import terminal
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.tables import closing, matrix
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.records import beside, failed, record, undecided


class Screen:
    """A terminal reporter that keeps what was written; ``shown`` is what one would see."""

    def __init__(self, *, isatty, fullwidth=100):
        self.isatty = isatty
        self.shown = [""]
        self.colours = []
        self.fullwidth = fullwidth
        self._file = types.SimpleNamespace(encoding="utf-8")

    @property
    def width_of_current_line(self):
        """How far the line is written."""
        return len(self.shown[-1])

    def line(self, text):
        """The end of a line."""
        self.shown[-1] += text
        self.shown.append("")

    def ensure_newline(self):
        """Nothing is ever half written."""

    def flush(self):
        """Everything is written at once."""

    def rewrite(self, text, erase=False):
        """Back to the beginning of the line."""
        self.shown[-1] = text

    def write_line(self, text, **markup):
        """A line, and the next one begins."""
        self.shown[-1] = text
        self.shown.append("")
        self.colours += markup

    def write_sep(self, sep, title):
        """A heading."""
        self.write_line(f"{sep} {title}")


def reporter(screen, verbosity=0, clock=lambda: 0.0):
    """A Reporter on this screen."""
    plugins = types.SimpleNamespace(getplugin={"terminalreporter": screen, "capturemanager": None}.get)
    config = types.SimpleNamespace(
        pluginmanager=plugins,
        get_verbosity=lambda: verbosity,
        get_terminal_writer=lambda: screen,
        cwd_relative_nodeid=str,
    )
    return terminal.Reporter(config, clock)


def event(variant="galera3", pair=7, *, seconds=0.26, warm_up=False, void="", load="mysqlslap write c50", **changes):
    """One finished round."""
    done = Round(variant, pair - 1, 0, RunResult(seconds, 1000), wall=0.5, started=0.0, void=void)
    given = {"ratio": 1.26, "low": 1.14, "high": 1.39, "next_look": 8, "cap": 160, "measured": 12.2, "budget": 120.0}
    return RoundProgress("test", load, done, pair, warm_up, **{**given, **changes})


def test_texts_of_servers_and_other_users_do_not_control_the_terminal():
    """Who holds a lock, what a server logged: their control characters are shown; lines of a message stay lines."""
    screen = Screen(isatty=True)
    show = reporter(screen)
    show.line("waiting: \x1b[2J\nhere")
    show.progress(event("\x1b[31mred", void="\x9b2J"))
    terminal.summary(screen, [record()], ["a note\x1b[0m"], terminal.Screen())

    shown = "".join(screen.shown)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert r"waiting: \x1b[2J" in shown
    assert r"void: \x9b2J" in shown
    assert r"a note\x1b[0m" in shown


def test_a_terminal_follows_the_claim_on_one_line():
    """Each round replaces the line: load, pair, variant, seconds, ratio, pair of the next look, budget."""
    screen = Screen(isatty=True, fullwidth=130)
    show = reporter(screen)
    show.progress(event(last=False))
    show.progress(event("flush_2", seconds=0.204))

    assert screen.shown == [
        "  mysqlslap write c50  pair 7 of at most 160  flush_2 0.204 s  1.26x (1.14 .. 1.39)"
        "  next check: pair 8  12 of 120 s"
    ]


def test_a_line_of_progress_names_its_claim():
    """Before the first look as the last part that is not time; then with the ratio, which may be one of a counter."""
    shown, claim = [], "lower fsyncs_per_commit"
    for width, changes in ((160, {}), (160, {"ratio": None}), (80, {}), (60, {}), (160, {"warm_up": True})):
        screen = Screen(isatty=True, fullwidth=width)
        reporter(screen).progress(event("flush_2", claim=claim, **changes))
        shown.append(screen.shown[0])

    assert f"  flush_2 0.260 s  {claim}: 1.26x (1.14 .. 1.39)  next check: pair 8  " in shown[0]
    assert f"  flush_2 0.260 s  {claim}  next check: pair 8  " in shown[1]
    assert shown[2] == f"  mysqlslap write c50  pair 7  {claim}: 1.26x (1.14 .. 1.39)"
    assert shown[3] == "  mysqlslap write c50  pair 7  1.26x (1.14 .. 1.39)"
    assert shown[4] == "  mysqlslap write c50  warm-up  flush_2 0.260 s"


def test_the_followed_line_gives_way():
    """A plain line takes the place of the one that follows the rounds."""
    screen = Screen(isatty=True)
    show = reporter(screen)
    show.progress(event())
    show.line("starting a cluster")

    assert screen.shown == ["starting a cluster", ""]


@pytest.mark.parametrize("isatty", [True, False])
def test_a_letter_keeps_its_line(isatty):
    """A line begins on a new line when pytest has begun one."""
    screen = Screen(isatty=isatty)
    show = reporter(screen)
    screen.shown = ["."]
    show.progress(event(pair=1))

    assert screen.shown[0] == "."
    assert screen.shown[1].strip().startswith("mysqlslap write c50")


def test_the_end_of_a_test_clears_the_followed_line():
    """The letter of a test is not written behind the progress of a round."""
    screen = Screen(isatty=True)
    show = reporter(screen)
    show.progress(event())
    show.end_live()

    assert screen.shown == [""]


def test_long_names_give_way_to_their_figures():
    """In a narrow log each variant of a block is still told from the other, with its seconds."""
    screen = Screen(isatty=False, fullwidth=80)
    show = reporter(screen)
    show.progress(event("the_defaults_of_the_distribution", warm_up=True, last=False, seconds=0.5))
    show.progress(event("the_candidate_of_the_distribution", warm_up=True, seconds=0.25))

    assert screen.shown[0] == "   mysqlslap write c50   warm-up   the_d...tion 0.500 s, the_c...tion 0.250 s"


def test_a_long_load_gives_way_to_the_pair():
    """What changes from line to line is kept: the number of the pair, and both rounds."""
    screen = Screen(isatty=False, fullwidth=80)
    show = reporter(screen)
    load = {"load": "sysbench oltp_update_non_index t4", "ratio": None, "pair": 1}
    show.progress(event("no_flush_at_commit", last=False, seconds=0.5, **load))
    show.progress(event("the_defaults_of_the_server", seconds=1.25, **load))

    assert screen.shown[0] == "   sysbench o...n_index t4   pair 1   no_fl...mmit 0.500 s, the_d...rver 1.250 s"


@pytest.mark.parametrize("isatty", [True, False])
def test_a_narrow_line_of_progress_keeps_the_ratio(isatty):
    """First the cap goes, then the next look, the seconds, and the rounds; in the end the middle of the rest."""
    shown, widths = [], (110, 90, 78, 68, 55, 40)
    for width in widths:
        screen = Screen(isatty=isatty, fullwidth=width)
        reporter(screen).progress(event("flush_2", seconds=0.204, pair=8))
        shown.append(screen.shown[0])

    parts = ("of at most", "next check", "of 120 s", "0.204 s", "1.26x (1.14")
    assert [[part in line for part in parts] for line in shown] == [
        [False, True, True, True, True],
        [False, False, True, True, True],
        [False, False, False, True, True],
        [False, False, True, False, True],
        [False, False, False, False, True],
        [False, False, False, False, False],
    ]
    assert all(len(line) <= width for line, width in zip(shown, widths, strict=True))
    assert "..." in shown[-1]


def test_a_log_has_a_line_for_a_block():
    """In a log the rounds of a pair share a plain line."""
    screen = Screen(isatty=False, fullwidth=130)
    show = reporter(screen)
    show.progress(event(last=False, pair=1, ratio=None))
    assert screen.shown == [""]
    show.progress(event("flush_2", seconds=0.204, pair=1, ratio=None))

    assert screen.shown[:-1] == [
        "   mysqlslap write c50   pair 1 of at most 160   galera3 0.260 s, flush_2 0.204 s"
        "   next check: pair 8   12 of 120 s"
    ]


def test_rounds_of_an_opening_block_have_its_number():
    """Its order is random, so both rounds of a line may be of one variant: the line names no pair."""
    screen = Screen(isatty=False, fullwidth=130)
    show = reporter(screen)
    for position in (6, 7):
        made = event(seconds=0.26, pair=8, ratio=None, opening=8, last=position == 7)
        show.progress(dataclasses.replace(made, round=dataclasses.replace(made.round, block=1, position=position)))

    assert screen.shown[-2] == (
        "   mysqlslap write c50   block 2, rounds 7-8 of 8   galera3 0.260 s, galera3 0.260 s"
        "   next check: pair 8   12 of 120 s"
    )
    screen = Screen(isatty=True, fullwidth=120)
    reporter(screen).progress(made)
    assert "  block 8, round 1 of 8  galera3 0.260 s  " in screen.shown[0]


def test_repetitions_of_an_event_have_their_number_and_not_that_of_a_pair():
    """Of all variants together; a log shows those of a turn in one line."""
    changes = {"ratio": None, "next_look": None, "budget": None, "repetitions": 14, "opening": 14, "last": False}
    screen = Screen(isatty=True, fullwidth=120)
    reporter(screen).progress(event(repetition=3, load="tpcc w1 t8, kill other", **changes))
    assert screen.shown[0] == "  tpcc w1 t8, kill other  repetition 3 of 14  galera3 0.260 s"

    screen = Screen(isatty=False, fullwidth=120)
    show = reporter(screen)
    for number, last in ((3, False), (4, True)):
        show.progress(event(pair=1, repetition=number, **{**changes, "last": last}))
    assert screen.shown[0] == "   mysqlslap write c50   repetitions 3-4 of 14   galera3 0.260 s, galera3 0.260 s"
    show.progress(event(repetition=5, void="the event is not proven", **changes))
    assert "  mysqlslap write c50  repetition 5 of 14  galera3  void: the event is not proven" in screen.shown


def test_a_log_is_thinned_out():
    """After the first pair a log has a line every two seconds, and one at each look."""
    now = [0.0]
    screen = Screen(isatty=False)
    show = reporter(screen, clock=lambda: now[0])
    for pair in range(1, 12):
        now[0] += 0.5
        show.progress(event(pair=pair, next_look=next(look for look in (6, 8, 11) if look >= pair)))

    assert [line.split("pair ")[1].split()[0] for line in screen.shown[:-1]] == ["1", "5", "6", "8", "11"]


@pytest.mark.parametrize(("rate", "shown"), [(None, "galera3 400/s"), (500.0, "galera3 p95 10 ms")])
def test_a_round_of_fixed_time_shows_what_it_did(rate, shown):
    """A timed round shows its goodput, a round of an open loop its p95 latency."""
    ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([0.01] * 9))})
    outcome = RunResult(2.0, 900, good=800, ledger=ledger, rate=rate)
    screen = Screen(isatty=False)
    made = event(pair=-4, warm_up=True)
    reporter(screen).progress(dataclasses.replace(made, round=dataclasses.replace(made.round, outcome=outcome)))

    assert screen.shown[0] == f"   mysqlslap write c50   warm-up   {shown}"


def test_a_warm_up_shows_no_ratio():
    """Rounds of warm-up blocks are labelled warm-up."""
    screen = Screen(isatty=False)
    reporter(screen).progress(event(pair=-4, warm_up=True))

    assert screen.shown[0] == "   mysqlslap write c50   warm-up   galera3 0.260 s"


def test_a_void_round_is_said_at_once():
    """Why a round does not count is a line of its own."""
    screen = Screen(isatty=True)
    reporter(screen).progress(event(void="semi-sync fell back"))

    assert screen.shown[0] == "  mysqlslap write c50  pair 7 of at most 160  galera3  void: semi-sync fell back"


def test_quiet_shows_no_rounds():
    """With -q only the verdicts are shown, with -qq not even those."""
    screen = Screen(isatty=False)
    show = reporter(screen, verbosity=-1)
    show.progress(event())
    assert screen.shown == [""]
    show.claim(record())
    assert screen.shown[0].startswith("  ✓ holds  flush_2 is 1.26x as fast as galera3")

    quieter = Screen(isatty=False)
    reporter(quieter, verbosity=-2).claim(record())
    assert quieter.shown == [""]


@pytest.mark.parametrize(("made", "colour"), [(record, "green"), (failed, "red"), (undecided, "yellow")])
def test_a_verdict_is_a_coloured_line_with_its_interval(made, colour):
    """After a claim come answer and interval; the whole message belongs to the failure and the report."""
    screen = Screen(isatty=False)
    reporter(screen).claim(made())

    assert len(screen.shown) == (4 if made is undecided else 3)
    assert screen.colours == [colour]


def test_the_verdict_of_a_worker_names_the_worker():
    """Its lines stand below each other."""
    screen = Screen(isatty=False)
    reporter(screen).claim(record(), "[gw0] ")

    assert screen.shown[0].startswith("[gw0] ✓ holds  flush_2 is 1.26x")
    assert screen.shown[1].startswith("               99.9 %: 1.10")


def test_verbose_shows_the_whole_message():
    """With -v each claim's message is printed whole."""
    screen = Screen(isatty=False)
    reporter(screen, verbosity=1).claim(record())

    assert screen.shown[0].endswith("\n  all of the message")


def test_the_message_fits_the_terminal():
    """Long lines are wrapped, with an indent that shows where each begins; only -vv shows the details."""
    screen = Screen(isatty=False, fullwidth=80)
    text = f"HOLDS: a is faster than b\n  {'measured and measured again ' * 9}\n  details:\n  seed 5"
    made = dataclasses.replace(record(), message=text)
    reporter(screen, verbosity=1).claim(made)
    lines = screen.shown[0].splitlines()

    assert lines[0] == "  HOLDS: a is faster than b"
    assert lines[1].startswith("  measured")
    assert all(line.startswith("    ") for line in lines[2:])
    assert max(map(len, lines)) <= 80
    assert "details" not in screen.shown[0]

    screen = Screen(isatty=False, fullwidth=80)
    reporter(screen, verbosity=2).claim(made)
    assert screen.shown[0].endswith("\n  details:\n  seed 5")


def test_the_meaning_of_published_is_one_line_below_the_claims():
    """It comes once for all claims, and only if one of them has a published ratio."""
    for records, times in (([record()], 0), ([record(published=7.4), record(load="two", published=2.0)], 1)):
        screen = Screen(isatty=False)
        terminal.summary(screen, records, [], terminal.Screen())
        assert screen.shown.count(closing.PUBLISHED) == times


BROKEN = TestDocument("suites/test_flush.py::test_broken", "broken", "RuntimeError: node2 has no disk", 3.0)


def test_the_summary_has_a_title_for_each_kind_and_ends_with_the_notes():
    """Claims that are decided, inconclusive ones, comparisons, and broken tests; the notes follow."""
    screen = Screen(isatty=False)
    terminal.summary(
        screen, [beside(), undecided(), record()], ["an overridden option"], terminal.Screen(), tests=[BROKEN]
    )

    assert [line for line in screen.shown if line.startswith("= ") and "compared" not in line] == [
        "= performance claims",
        "= inconclusive: neither pass nor failure",
        "= measured without a claim",
        "= broken: says nothing about speed",
    ]
    assert "! broken  suites/test_flush.py::test_broken" in screen.shown
    assert screen.shown[-2:] == ["an overridden option", ""]


def test_a_run_in_which_everything_broke_says_so():
    """It has no claim, and no row of a table."""
    screen = Screen(isatty=False)
    terminal.summary(screen, [], [], terminal.Screen(), tests=[BROKEN])

    assert screen.shown[0] == "= broken: says nothing about speed"


def test_the_last_line_counts_and_names_the_page(tmp_path, monkeypatch):
    """The path is short where it lies below the directory of the user, and has its own line where both are long."""
    monkeypatch.chdir(tmp_path)
    page = f"report: {tmp_path}/reports/latest/index.html"
    [line] = terminal.last_lines("1 holds, 1 refuted, 7 inconclusive, 1 broken", page, 80)

    assert len(line) == 80
    assert line.split("  ")[0] == "1 holds, 1 refuted, 7 inconclusive, 1 broken"
    assert line.endswith("   report: reports/latest/index.html")
    long = "10 hold, 10 refuted, 17 inconclusive, 4 compared, 11 broken"
    assert terminal.last_lines(long, page, 80) == [long, "report: reports/latest/index.html"]
    assert terminal.last_lines("1 holds", "report: /elsewhere/index.html", 80)[0].endswith(
        "report: /elsewhere/index.html"
    )


def test_a_command_in_a_note_is_not_broken():
    """It can be copied, wherever the line ends."""
    for words in range(4, 14):
        screen, note = Screen(isatty=False), f"{'no ' * words}charts: pip install 'pytest-dbcluster[plots]' helps"
        terminal.summary(screen, [record()], [note], terminal.Screen(50))

        assert sum("pip install 'pytest-dbcluster[plots]'" in line for line in screen.shown) == 1


def test_the_chance_that_any_claim_is_wrong_is_the_last_line():
    """Below the page, in lines that fit, with and without a page."""
    joint = "12 claims: at most .006 that any is wrong; 2 guards: at most .1 more that any holds wrongly, if rounds are"
    for page in ("report: /reports/index.html", ""):
        shown = terminal.last_lines("14 hold", page, 80, joint)
        assert shown[0].startswith("14 hold")
        assert " ".join(line.strip() for line in shown[1:]) == joint
        assert max(map(len, shown)) <= 80


def test_without_a_page_the_last_line_counts():
    """Why there is none stands above, in lines that fit."""
    why = "no page: RuntimeError: a word that is long and says little " * 3

    assert terminal.last_lines("1 holds", why, 80)[-1] == "1 holds"
    assert max(map(len, terminal.last_lines("1 holds", why, 80))) <= 80
    assert terminal.last_lines("1 holds", "", 80) == ["1 holds"]
    assert terminal.last_lines("", "", 80) == []


@pytest.mark.parametrize(
    ("encoding", "of_locale", "ascii_only"),
    [("utf-8", "UTF-8", False), ("UTF8", "utf-8", False), ("ascii", "UTF-8", True), ("utf-8", "ANSI_X3.4-1968", True)],
)
def test_letters_are_those_of_the_terminal(monkeypatch, encoding, of_locale, ascii_only):
    """ASCII alone where the output or the locale has no UTF-8: with LC_ALL=C, Python writes UTF-8 all the same."""
    monkeypatch.setattr("locale.getencoding", lambda: of_locale)
    writer = types.SimpleNamespace(fullwidth=90, _file=types.SimpleNamespace(encoding=encoding))
    config = types.SimpleNamespace(get_terminal_writer=lambda: writer, cwd_relative_nodeid=str)

    assert terminal.Screen.of(config) == terminal.Screen(90, ascii_only, str)


NAMES = st.text("abcdefghij_xyz", min_size=1, max_size=150)


@given(NAMES, NAMES, st.integers(80, 130))
@example(name="_" * 25, load="_" * 25, width=80)
@example(name="_" * 60, load="_" * 60, width=80)
def test_no_line_of_the_closing_output_is_wider_than_the_terminal(name, load, width):
    """Claims, titles, the matrix of releases, broken tests, notes and the last lines; commands alone may be wider."""
    screen = Screen(isatty=False)
    made = [make(candidate=name, load=load) for make in (record, failed, undecided, beside)]
    made += [dataclasses.replace(one, release="mariadb:11.8 11.8.3") for one in made]
    broken = dataclasses.replace(BROKEN, test=f"test_x.py::{name}[mariadb:11.8]", reason=f"{load} {name}")
    shown = matrix.matrix(made, [])
    terminal.summary(screen, made, [f"a note on {name} of {load} " * 3], terminal.Screen(width), (), shown, [broken])
    lines = [line for line in screen.shown if not line.startswith("    pytest ")]

    assert max(map(len, lines)) <= width


def test_a_run_without_claims_has_no_summary():
    """A run without records prints no closing table, and its notes alone."""
    screen = Screen(isatty=False)
    terminal.summary(screen, [], ["a note"], terminal.Screen())

    assert [line for line in screen.shown if line] == ["a note"]
    screen.shown.clear()
    terminal.summary(screen, [], [], terminal.Screen())
    assert screen.shown == []

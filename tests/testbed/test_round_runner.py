"""One round on a running cluster: what makes it void, how long it drained, and rounds that are one."""

from __future__ import annotations

import dataclasses
import itertools
import re
import threading
import time

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import CommandFailed, NodeDied, WorkloadError
from pytest_dbcluster.releases import find
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.testbed import round_runner
from pytest_dbcluster.workloads.workload import Setting
from tests.support.facts import missing
from tests.support.fakes import Idle

MOVED = "the primary went from n1 to n2"  # the words of ``Form``


@dataclasses.dataclass
class Form(Topology):
    """A topology with powers that are played: readings and backlogs, one after the other."""

    readings: list[str] = dataclasses.field(default_factory=lambda: ["n"] * 9)
    backlogs: list[list[str]] = dataclasses.field(default_factory=list)

    def options(self, node, peers):
        """None."""
        return {}

    def form(self, nodes):
        """Nothing to start."""

    def problems(self, nodes):
        """None."""
        return []

    def watch(self, nodes):
        """The next reading."""
        return {"primary": self.readings.pop(0)}

    def void(self, before, after):
        """A changed reading is said."""
        return "" if before == after else f"the primary went from {before['primary']} to {after['primary']}"

    def backlog(self, nodes):
        """The next backlog, and none after the last."""
        return self.backlogs.pop(0) if self.backlogs else []


class Load(Idle):
    """A load that takes no time, or fails."""

    def __init__(self, error=None):
        self.error = error

    def run(self, setting):
        """Nothing, or the error."""
        if self.error:
            raise self.error
        return RunResult(0.5, 100, 100)


@pytest.fixture
def play(standalone, monkeypatch):
    """Run a round of a load on a real server whose topology is played."""

    def play(form, load=None):
        monkeypatch.setattr(standalone, "topology", form)
        setting = Setting(standalone, standalone.hosts[0], None, "quick", print)
        return round_runner.run_round(load or Load(), setting, variant="semi", block=2, position=1)

    return play


def test_a_quiet_round_counts(play):
    """Nothing was noticed between the two readings."""
    done = play(Form())

    assert (done.variant, done.block, done.position, done.void) == ("semi", 2, 1, "")
    assert done.outcome == RunResult(0.5, 100, 100)


def test_a_round_in_which_the_topology_noticed_something_is_void(play):
    """It says what."""
    assert play(Form(readings=["n1", "n2"])).void == MOVED


def test_a_load_that_fails_because_of_it_makes_a_void_round(play):
    """The load's own words stand behind the reason; the round is drawn again like any void one."""
    done = play(Form(readings=["n1", "n2", "n2"]), Load(WorkloadError("slap ended:\n1290: read-only")))

    assert done.void.startswith(f"{MOVED}; ")
    assert missing(done.void, "the workload failed", ": 1290: read-only") == []
    assert done.outcome.operations == 0


class Late(Load):
    """A load that says itself that its round does not count."""

    def run(self, setting):
        """With the reason."""
        return dataclasses.replace(super().run(setting), void="load host b began late")


class Nothing(Load):
    """A load that ends without a success: it tried ``operations``, of which ``good`` ended as intended."""

    def __init__(self, operations, good):
        super().__init__()
        self.operations, self.good = operations, good

    def run(self, setting):
        """Half a second of nothing."""
        return RunResult(0.5, self.operations, good=self.good)


@pytest.mark.parametrize(("operations", "good"), [(0, None), (0, 0), (70, 0)])
def test_a_round_in_which_nothing_succeeded_is_void(play, operations, good):
    """Two variants that both do nothing are no evidence of equal speed."""
    assert play(Form(), Nothing(operations, good)).void == f"no operation succeeded: 0 of {operations}"


def test_one_success_makes_a_round_count(play):
    """However few: a slow variant is slow, and not void."""
    assert play(Form(), Nothing(70, 1)).void == ""


def test_a_round_that_the_load_itself_does_not_count_is_void(play):
    """For its reason."""
    assert play(Form(), Late()).void == "load host b began late"


def test_an_open_loop_that_did_too_little_is_void(play):
    """The servers could not follow the rate, so that its latencies are those of a queue."""

    class Paced(Load):
        """A load that does half of what was offered."""

        round_seconds = 0.4

        def run(self, setting):
            """It was offered 200 a second, and took longer than it should for 40 of 80."""
            return RunResult(0.5, 40, 40, good=40, rate=200.0, offered=80)

    done = play(Form(), Paced())

    assert missing(done.void, "saturated", "40 of 80 operations done", "200/s", "less than 95 %") == []
    assert done.behind is True


def test_a_round_says_what_its_ledger_and_its_client_say(play):
    """Shares and retries are counters, and a thread that was always on a CPU is the limit."""

    class Busy(Load):
        """A load whose client could not do more."""

        def run(self, setting):
            """One transaction of two needed a second attempt."""
            ledger = Ledger({"x": LedgerEntry({1: 1, 2: 1}, committed=2)})
            return RunResult(0.5, 3, 2, good=2, ledger=ledger, client_seconds=0.5, busiest=0.97)

    done = play(Form(), Busy())

    assert done.counters["abort_share"] == pytest.approx(1 / 3)
    assert (done.counters["retries"], done.counters["retries_per_commit"]) == (1.0, 0.5)
    assert missing(done.limited, "a thread of the load generator", "97 % of the time") == []
    assert done.samples["client_cores"] > 0


def asked_to_wait(node):
    """How often a node has asked the others to wait for it."""
    return int(node.status("wsrep_flow_control_sent")["wsrep_flow_control_sent"])


def unlock_when_paused(node, before, unlocked):
    """Let a node apply again, once the others have waited for it."""
    try:
        wait.until(lambda: [] if asked_to_wait(node) > before else ["nobody waits"], "flow control", seconds=60)
        time.sleep(0.05)  # of pause
    finally:
        node.query("UNLOCK TABLES")
        unlocked.set()


class Repeated(Idle):
    """A load of ten seconds, by its own account, that measured half of one; a node does not apply for a while."""

    def run(self, setting):
        """The other node is asked to wait when that one is behind."""
        one, other = setting.cluster.nodes
        one.query("CREATE OR REPLACE TABLE mysql.dbcluster_paused (id INT PRIMARY KEY)")
        round_runner.drain(setting.cluster)
        other.query("FLUSH TABLES mysql.dbcluster_paused WITH READ LOCK")
        unlocked, before = threading.Event(), asked_to_wait(other)
        until_paused = threading.Thread(target=unlock_when_paused, args=(other, before, unlocked))
        until_paused.start()
        for number in itertools.takewhile(lambda _: not unlocked.is_set(), itertools.count()):
            one.query(f"INSERT INTO mysql.dbcluster_paused VALUES ({number})")
        until_paused.join()
        return RunResult(0.5, 100, 100, span=10.0)


def test_a_share_of_time_is_one_of_the_time_that_was_counted(galera2):
    """A tool that repeats by itself reports the time of one repetition, and the servers counted during all of them."""
    setting = Setting(galera2, galera2.hosts[0], None, "paper", print)
    done = round_runner.run_round(Repeated(), setting, variant="a", block=0, position=0)
    galera2.nodes[0].query("DROP TABLE mysql.dbcluster_paused")
    paused = done.counters["paused_ns"] / 1e9 / 2

    assert paused > 0
    assert done.counters["paused_share"] == pytest.approx(paused / (10 + done.counters["drain_seconds"]))


def test_a_round_that_is_not_run_has_done_nothing():
    """It holds the reason, and what is shown of any round; of a turn it takes the others along."""
    one = round_runner.void_round("after its reset node2 is behind", variant="a", block=3, position=1)
    other = Round("a", 3, 1, RunResult(1.0, 100, 50), 2.0, 10.0, counters={"drain_seconds": 0.5}, samples={"s": 1.0})

    assert (one.variant, one.block, one.position) == ("a", 3, 1)
    assert (one.throughput, one.goodput, one.drained_throughput, one.settled) == (0.0, 0.0, 0.0, False)
    for several in ([one, other], [other, one], [one, one]):
        assert round_runner.merge(several).void == "after its reset node2 is behind"


def test_rounds_of_a_turn_have_the_statements_of_all_of_them():
    """Clusters that take turns have claims about a statement too; the least and the most are those of any round."""
    times = [Histogram.of([0.001, 0.002]), Histogram.of([0.004])]
    rounds = [
        Round("a", 3, 1, RunResult(1.0, 100, 50, statements={"order:4": one}, least=least, most=3.0), 2.0, 10.0)
        for one, least in zip(times, (0.5, None), strict=True)
    ]
    merged = round_runner.merge(rounds).outcome

    assert merged.statements == {"order:4": Histogram.of([0.001, 0.002, 0.004])}
    assert (merged.least, merged.most) == (0.5, 3.0)


def test_a_long_last_word_is_cut_at_its_beginning(play):
    """What happened stands at its end."""
    done = play(Form(readings=["n1", "n2", "n2"]), Load(WorkloadError("x" * 300 + " read-only")))

    assert done.void.startswith("the primary went from n1 to n2; the workload failed: ... xxx")
    assert done.void.endswith("x read-only")
    assert len(done.void) < 270


@pytest.mark.parametrize("error", [WorkloadError("1290: read-only"), NodeDied("n1", "ended with 1", "log", [])])
def test_a_load_that_fails_by_itself_is_an_error(play, error):
    """A quiet topology excuses nothing, and a node that died is never one void round."""
    with pytest.raises(type(error)) as caught:
        play(Form(), Load(error))
    assert caught.value is error


def test_a_command_that_fails_is_a_load_that_fails(play):
    """A workload in Python may run any command: its output is the error, or the reason of a void round."""
    error = CommandFailed(["go-tpc", "--password=x"], 3, "starting", "1290: read-only\n")
    with pytest.raises(WorkloadError) as caught:
        play(Form(), Load(error))
    void = play(Form(readings=["n1", "n2", "n2"]), Load(error)).void

    assert "ended with 3 on standalone1: 1290: read-only" in str(caught.value)
    assert "--password" not in str(caught.value)
    assert void.startswith("the primary went from n1 to n2; the workload failed: ")
    assert void.endswith("ended with 3 on standalone1: 1290: read-only")


def test_the_drain_is_the_time_until_nothing_is_left(play):
    """Read again and again, and counted in the round."""
    done = play(Form(backlogs=[["behind"]] * 3))

    assert done.counters["drain_seconds"] >= 3 * round_runner.POLL
    assert done.drained_throughput < done.throughput


def test_a_round_that_does_not_drain_is_void(play, monkeypatch):
    """Its drain time would be a lie: it says what was left."""
    monkeypatch.setattr(round_runner, "DRAIN_SECONDS", 0.02)

    void = play(Form(backlogs=[["n2 is behind"]] * 99)).void
    assert missing(void, "not drained", "after 0.02 s: n2 is behind") == []


def test_a_topology_without_powers_drains_nothing(standalone):
    """One server alone has nobody that follows it, and nothing to notice."""
    done = round_runner.run_round(
        Load(), Setting(standalone, standalone.hosts[0], None, "quick", print), variant="a", block=0, position=0
    )

    assert (done.counters["drain_seconds"], done.void) == (0.0, "")


def test_a_real_cluster_drains_after_writes(galera2):
    """The other node applies what was certified; then the round has a drain above nothing and is not void."""

    class Writes(Idle):
        def run(self, setting):
            setting.cluster.nodes[0].query("CREATE OR REPLACE TABLE mysql.dbcluster_drain (id INT PRIMARY KEY)")
            for number in range(50):
                setting.cluster.nodes[0].query(f"INSERT INTO mysql.dbcluster_drain VALUES ({number})")
            return RunResult(0.1, 50, 50)

    done = round_runner.run_round(
        Writes(), Setting(galera2, galera2.hosts[0], None, "quick", print), variant="g", block=0, position=0
    )
    galera2.nodes[0].query("DROP TABLE mysql.dbcluster_drain")

    assert 0 < done.counters["drain_seconds"] < round_runner.DRAIN_SECONDS
    assert done.void == ""


@dataclasses.dataclass(frozen=True)
class Inserts(Idle):
    """A load that commits rows one by one; ``away``: while the replica does not read what the primary writes."""

    away: bool = False

    def run(self, setting):
        """Ten rows."""
        primary, replica = setting.cluster.nodes
        if self.away:
            replica.query("STOP REPLICA IO_THREAD")
        for _ in range(10):
            primary.query("INSERT INTO dbcluster_rounds.t () VALUES ()")
        if self.away:
            replica.query("START REPLICA IO_THREAD")
        return RunResult(0.1, 10, 10)


@pytest.fixture(scope="module")
def semisync(bring):
    """A primary that waits three seconds for its replica, with a table to write to."""
    cluster = bring("semisync", 2, rpl_semi_sync_master_timeout="3000")
    cluster.nodes[0].query("CREATE DATABASE dbcluster_rounds")
    cluster.nodes[0].query("CREATE TABLE dbcluster_rounds.t (id INT AUTO_INCREMENT PRIMARY KEY)")
    return cluster


def test_a_round_in_which_semi_sync_fell_back_is_void(semisync):
    """Commits returned that no replica had; it drains until semi-sync is on again, and the next round counts."""
    setting = Setting(semisync, semisync.hosts[0], None, "quick", print)
    place = {"variant": "semi", "block": 0, "position": 0}
    first, fallen, after = (round_runner.run_round(Inserts(away), setting, **place) for away in (False, True, False))

    assert (first.void, after.void) == ("", "")
    assert re.search(r"rpl_semi_sync_master_no_tx changed from \d+ to \d+", fallen.void)  # slow disks had some before
    assert fallen.counters["drain_seconds"] < round_runner.DRAIN_SECONDS
    assert semisync.problems() == []
    assert len({node.query("SELECT COUNT(*) FROM dbcluster_rounds.t")[0][0] for node in semisync.nodes}) == 1


@dataclasses.dataclass(frozen=True)
class MovesThePrimary(Idle):
    """A load under which another member becomes the primary, and which then fails as a client would."""

    def run(self, setting):
        """Write, move the primary, write again on the old one: it refuses."""
        old = setting.cluster.writers[0]
        other = next(node for node in setting.cluster.nodes if node is not old)
        (uuid,) = other.query("SELECT @@server_uuid")[0]
        other.query(f"SELECT group_replication_set_as_primary('{uuid}')")
        try:
            old.query("CREATE DATABASE dbcluster_moved")
        except SQLError as error:
            raise WorkloadError(str(error)) from error
        raise AssertionError("the old primary still took writes")


@pytest.mark.thorough
def test_a_round_in_which_the_primary_changed_is_void(briefly):
    """On a group: the load failed because of it; the cluster is fit again, and writes go to the new one."""
    group = briefly("group_replication", 2, find.find("mysql:9.7"))
    before = group.writers[0].name
    setting = Setting(group, group.hosts[0], None, "quick", print)
    done = round_runner.run_round(MovesThePrimary(), setting, variant="group", block=0, position=0)

    assert done.void.startswith(f"the primary changed from {before} to {group.writers[0].name}; the workload failed: ")
    assert "read-only" in done.void
    wait.until(group.problems, "the group", seconds=30)

"""Documents of made-up runs, for the tests of everything that shows them."""

from pytest_dbcluster.reporting.documents.run_document import FORMAT, MachineDocument, RunDocument, TestDocument

TESTS = (
    TestDocument("test_flush.py::test_flush_2[write]", "holds", "", 24.5),
    TestDocument("test_flush.py::test_flush_2[update]", "refuted", "REFUTED flush_2.beats(galera3)", 31.0),
    TestDocument("test_flush.py::test_flush_2[mixed]", "inconclusive", "INCONCLUSIVE flush_2.beats(galera3)", 120.0),
    TestDocument("test_flush.py::test_nodes", "broken", "node2 ended on its own", 3.0),
    TestDocument("test_flush.py::test_router", "skipped", "no mysqlrouter on PATH", 0.0),
    TestDocument("test_curve.py::test_threads", "passed", "", 60.0),
)
CUT_SHORT = TestDocument("test_flush.py::test_flush_2[read]", "cut short", "the run was ended by SIGTERM", 4.0)
MACHINE = MachineDocument("a CPU", 2, 1.5, 8 * 2**30, "6.1.0", "ext4", "/dev/vda", "0f" * 8)


def run_document(**changes):
    """A run with a test of each outcome, which ended by itself."""
    given = {
        "format": FORMAT,
        "run_id": "1a2b3c4d",
        "commit": "4fd1" * 10,
        "dirty": True,
        "command": "pytest suites/galera --db-seed=813",
        "plugin_version": "0.1.0",
        "began": 1_700_000_000.0,
        "ended": 1_700_000_300.5,
        "cut_short": "",
        "selected": len(TESTS),
        "releases": {"mariadb:10.11": "10.11.19", "mysql:8.4": ""},
        "machine": MACHINE,
        "tests": TESTS,
        "time_spent": {"rounds": 123.0, "overhead of rounds": 27.0, "starts": 60.0, "checks": 0.2, "other": 90.0},
    }
    return RunDocument(**{**given, **changes})

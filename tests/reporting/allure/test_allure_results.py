"""What Allure is given: whole runs of pytest on made-up rounds."""

import json
import re

import pytest

from pytest_dbcluster.reporting.allure import allure_results as allure
from tests.plugin.test_outcomes import FAKE, TEST, UNDECIDED
from tests.support import conftests

SEVERAL = """
    from pytest_dbcluster.spec import ClusterSpec

    def measured(measure, load="mysqlslap write"):
        return measure(load, on=[ClusterSpec("galera", nodes=3), ClusterSpec("galera", nodes=3, name="flush_2")])

    def test_holds(measure):
        default, flush_2 = measured(measure)
        assert flush_2.beats(default)

    def test_fails(measure):
        default, flush_2 = measured(measure)
        assert flush_2.scales(default, at_least=3)

    def test_open(measure):
        default, flush_2 = measured(measure)
        assert flush_2.scales(default, at_least=1.501)

    def test_dies(measure):
        default, flush_2 = measured(measure, "dies")
        assert flush_2.beats(default)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a made-up suite with Allure; its arguments are those of pytest. Charts are made where it is said."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(*arguments, source=TEST, load="mysqlslap write", allure=True, charts=False, **environment):
        pytester.makeconftest(FAKE.read_text() + ("" if charts else conftests.NO_CHARTS))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        pytester.makepyfile(source.replace("{load!r}", repr(load)))
        plugins = ["-p", "pytest_dbcluster.plugin.hooks", *(["-p", "allure_pytest"] if allure else [])]
        return pytester.runpytest_inprocess("-Werror", *plugins, "--db-seed=1", *arguments)

    return run


def results(directory):
    """The tests of a results directory by name."""
    found = [json.loads(path.read_text()) for path in directory.glob("*-result.json")]
    return {one["name"].partition(":")[0]: one for one in found}


def matching(result):
    """The categories that a result falls into."""
    said = json.loads(allure.categories())
    message = result.get("statusDetails", {}).get("message", "")
    return [
        one["name"]
        for one in said
        if result["status"] in one["matchedStatuses"] and re.fullmatch(one.get("messageRegex", r"[\s\S]*"), message)
    ]


def test_each_outcome_has_a_status_and_one_category(run, pytester):
    """Failed claims, broken tests and inconclusive claims fall into one category each."""
    run("--db-max-pairs=12", source=SEVERAL)
    found = results(pytester.path / "reports/latest/allure-results")

    assert {name: (one["status"], matching(one)) for name, one in found.items()} == {
        "test_holds": ("passed", []),
        "test_fails": ("failed", ["Slower, or wrong"]),
        "test_open": ("unknown", ["Inconclusive: neither pass nor failure"]),
        "test_dies": ("broken", ["Broken: could not tell"]),
    }


def test_a_claim_is_a_step_with_its_figures(run, pytester):
    """The step is named after the verdict; variants are parameters; message, rounds and chart are attached."""
    run("--db-seed=5", charts=True)
    directory = pytester.path / "reports/latest/allure-results"
    [step] = results(directory)["test_flush"]["steps"]
    attached = {one["name"]: one for one in step["attachments"]}
    parameters = {one["name"]: one["value"] for one in step["parameters"]}

    assert re.fullmatch(
        r"holds  flush_2\.beats\(galera3\)  mysqlslap write  1\.\d\dx \(.*\), 12 pairs, \d+ s", step["name"]
    )
    assert step["status"] == "passed"
    assert parameters["candidate"] == "flush_2"
    assert parameters["baseline"] == "galera3"
    assert parameters["release"] == "mariadb:10.11 1.2.3"
    assert {name: one["type"] for name, one in attached.items()} == {
        "verdict": "text/plain",
        "rounds": "text/csv",
        "chart": "image/svg+xml",
    }
    assert (directory / attached["verdict"]["source"]).read_text().startswith("HOLDS: flush_2 is faster than galera3")
    assert len((directory / attached["rounds"]["source"]).read_text().splitlines()) == 25


def test_versions_are_kept_apart_and_seeds_are_not(run, pytester):
    """A result is identified by its test and release; another seed is the same test."""
    seen = []
    for arguments in (["--db-seed=1"], ["--db-seed=2"], ["--db-seed=1", "--db-release=mariadb:11.8"]):
        run(*arguments)
        seen.append(results(pytester.path / "reports/latest/allure-results")["test_flush"])

    assert seen[0]["historyId"] == seen[1]["historyId"] != seen[2]["historyId"]
    assert [[label["value"] for label in one["labels"] if label["name"] == "env"] for one in seen] == [
        ["mariadb:10.11"],
        ["mariadb:10.11"],
        ["mariadb:11.8"],
    ]


IDENTITIES = """
    import pytest
    from pytest_dbcluster.spec import ClusterSpec

    ON = [ClusterSpec("galera", nodes=3), ClusterSpec("galera", nodes=3, name="flush_2")]

    @pytest.mark.parametrize("mode", ["write", "mixed"])
    def test_modes(measure, mode):
        default, flush_2 = measure(f"mysqlslap {mode}", on=ON)
        assert flush_2.beats(default)

    @pytest.mark.skip(reason="not today")
    def test_left_out(measure):
        pass

    @pytest.mark.releases()
    def test_names_its_own(measure):
        default, flush_2 = measure("mysqlslap write", on=ON)
        assert flush_2.beats(default)

    def test_measures_nothing():
        pass
"""


def environments(found):
    """The environment of each result."""
    return [label["value"] for label in found["labels"] if label["name"] == "env"]


def test_a_test_is_one_case_on_all_releases_and_no_other_test_is(run, pytester):
    """Allure shows the results of one case side by side: the parameters of a test are part of it, the release not."""
    run("--db-release=mariadb:10.11", "--db-release=mariadb:11.8", source=IDENTITIES)
    directory = pytester.path / "reports/latest/allure-results"
    found = [json.loads(path.read_text()) for path in directory.glob("*-result.json")]
    cases = {}
    for one in found:
        cases.setdefault(one["testCaseId"], []).append(one)
    shown = sorted(
        (
            sorted({one["name"].partition(":")[0] for one in each}),
            sorted(env for one in each for env in environments(one)),
        )
        for each in cases.values()
    )

    assert shown == [
        (["test_left_out"], ["mariadb:10.11", "mariadb:11.8"]),
        (["test_measures_nothing"], []),
        (["test_modes[mixed]"], ["mariadb:10.11", "mariadb:11.8"]),
        (["test_modes[write]"], ["mariadb:10.11", "mariadb:11.8"]),
        (["test_names_its_own"], ["several releases"]),
    ]
    assert len({one["historyId"] for one in found}) == len(found) == 8


def test_a_run_on_one_release_goes_on_with_the_history_of_a_matrix(run, pytester):
    """A result has the same identity and parameters, whether its release was one of several or the only one."""
    run("--db-release=mariadb:10.11", "--db-release=mariadb:11.8", source=IDENTITIES)
    directory = pytester.path / "reports/latest/allure-results"
    several = {(one["historyId"], str(one.get("parameters"))) for one in map(json.loads, texts(directory))}
    run("--db-release=mariadb:11.8", source=IDENTITIES)
    alone = {(one["historyId"], str(one.get("parameters"))) for one in map(json.loads, texts(directory))}

    assert len(alone) == 5
    assert alone < several


def texts(directory):
    """The texts of the results of a directory."""
    return [path.read_text() for path in directory.glob("*-result.json")]


def test_no_result_says_on_which_host_or_thread_it_ran(run, pytester):
    """These labels say nothing about a claim."""
    run(source=IDENTITIES)
    named = {
        label["name"]
        for text in texts(pytester.path / "reports/latest/allure-results")
        for label in json.loads(text)["labels"]
    }

    assert {"env", "suite"} <= named
    assert not named & {"host", "thread"}


def test_a_result_is_shown_with_its_ratio_its_sentence_and_its_chart(run, pytester):
    """Name and description say what was measured; nothing must be opened first."""
    run("--db-max-pairs=12", source=SEVERAL, charts=True)
    found = results(pytester.path / "reports/latest/allure-results")
    holds, fails, undecided = (found[f"test_{name}"] for name in ("holds", "fails", "open"))

    assert re.fullmatch(r"test_holds: 1\.\d\dx \(1\.\d\d \.\. 1\.\d\d\)", holds["name"])
    assert "<h3>✓ holds: flush_2 is faster than galera3</h3>" in holds["descriptionHtml"]
    assert '<img src="data:image/svg+xml;base64,' in holds["descriptionHtml"]
    assert fails["statusDetails"]["message"].startswith(
        "refuted: flush_2 is not more than 3 times as fast as galera3: 1."
    )
    assert fails["statusDetails"]["trace"].startswith("REFUTED: flush_2 is not more than 3 times as fast as galera3")
    assert undecided["name"].startswith("test_open: inconclusive: 1.")
    assert undecided["statusDetails"]["message"].startswith("inconclusive: whether flush_2 is more than 1.501 times as")
    assert undecided["statusDetails"]["trace"].startswith("INCONCLUSIVE: whether flush_2 is more than 1.501 times")


def test_a_claim_that_could_not_begin_says_why(run, pytester):
    """Without rounds there is no claim to show, and Allure shows no message of an inconclusive test."""
    run("--db-run-budget=0.001")
    [found] = results(pytester.path / "reports/latest/allure-results").values()

    assert found["status"] == "unknown"
    assert re.match(r"<h3>inconclusive: .*; nothing was started</h3>", found["descriptionHtml"])


def test_what_a_test_says_of_itself_stays(run, pytester):
    """A title and a description of the test's own stand before what is added."""
    own = """
        import allure
        from pytest_dbcluster.spec import ClusterSpec

        def test_it(measure):
            allure.dynamic.title("my title")
            allure.dynamic.description_html("<p>my text</p>")
            default, flush_2 = measure("mysqlslap write", on=[
                ClusterSpec("galera", nodes=3), ClusterSpec("galera", nodes=3, name="flush_2")])
            assert flush_2.beats(default)
    """
    run(source=own)
    [found] = results(pytester.path / "reports/latest/allure-results").values()

    assert found["name"].startswith("my title: 1.")
    assert found["descriptionHtml"].startswith("<p>my text</p><h3>✓ holds:")


def test_a_test_that_could_not_measure_is_the_same_test(run, pytester):
    """An error before the first claim leaves a result's identity as it is."""
    run()
    good = results(pytester.path / "reports/latest/allure-results")["test_flush"]
    run(load="dies")
    broken = results(pytester.path / "reports/latest/allure-results")["test_flush"]

    assert broken["status"] == "broken"
    assert broken["historyId"] == good["historyId"]


def test_a_matrix_has_a_result_for_each_release(run, pytester):
    """Two releases are two results with an environment each."""
    run("--db-release=mariadb:10.11", "--db-release=mariadb:11.8")
    found = list(map(json.loads, texts(pytester.path / "reports/latest/allure-results")))

    assert len({one["historyId"] for one in found}) == 2
    assert {label["value"] for one in found for label in one["labels"] if label["name"] == "env"} == {
        "mariadb:10.11",
        "mariadb:11.8",
    }


def test_the_run_says_what_it_ran_on(run, pytester):
    """Environment, categories and metrics lie beside the results."""
    run("--db-seed=5")
    directory = pytester.path / "reports/latest/allure-results"
    metrics = json.loads((directory / "claims-perf.json").read_text())
    environment = (directory / "environment.properties").read_text().splitlines()

    assert environment[:3] == ["release=mariadb\\:10.11\\ 1.2.3", "profile=quick", "seed=5"]
    assert any(line.startswith("python=") for line in environment)
    assert (directory / "categories.json").read_text() == allure.categories()
    assert [one["title"] for one in metrics] == [
        "mariadb:10.11: ratio",
        "mariadb:10.11: ratio, from",
        "mariadb:10.11: ratio, to",
        "mariadb:10.11: throughput of flush_2, median",
        "mariadb:10.11: throughput of galera3, median",
    ]


def test_a_directory_that_the_user_names_is_theirs(run, pytester):
    """With --alluredir the results go there, complete, and nothing in it is removed."""
    mine = pytester.path / "mine"
    mine.mkdir()
    (mine / "old-result.json").write_text("{}")
    run(f"--alluredir={mine}")

    made = [json.loads(text) for text in texts(mine) if text != "{}"]
    assert [(one["name"].partition(": 1.")[0], environments(one)) for one in made] == [
        ("test_flush", ["mariadb:10.11"])
    ]
    assert (mine / "old-result.json").exists()
    assert (mine / "categories.json").exists()
    assert not (pytester.path / "reports/latest/allure-results").exists()


def test_our_own_directory_holds_one_run(run, pytester):
    """Results of the run before are removed; what else lies there stays."""
    run()
    directory = pytester.path / "reports/latest/allure-results"
    (directory / "mine.txt").write_text("mine")
    run()

    assert len(list(directory.glob("*-result.json"))) == 1
    assert (directory / "mine.txt").exists()


@pytest.mark.parametrize("arguments", [[], ["--collect-only"]])
def test_runs_that_do_not_measure_write_nothing(run, pytester, arguments):
    """Runs without measuring tests, and ``--collect-only``, make no directory."""
    run(*arguments, source=TEST if arguments else "def test_other():\n    pass\n")

    assert not (pytester.path / "reports").exists()


def test_without_allure_the_run_is_the_same(run, pytester):
    """Where allure-pytest is not loaded, only its results are missing."""
    result = run(allure=False)

    assert result.ret == 0
    assert (pytester.path / "reports/latest/claims.jsonl").exists()
    assert not (pytester.path / "reports/latest/allure-results").exists()


def test_strict_runs_keep_the_category(run, pytester):
    """With --db-strict an inconclusive claim is broken, and stays in the category of inconclusive claims."""
    environment = {name.upper(): str(value) for name, value in UNDECIDED.items()}
    run("--db-max-pairs=12", "--db-strict", **environment)
    [found] = results(pytester.path / "reports/latest/allure-results").values()

    assert found["status"] == "broken"
    assert matching(found) == ["Inconclusive: neither pass nor failure"]

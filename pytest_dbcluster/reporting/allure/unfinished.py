"""Results of tests that had not ended when their run was killed; allure-pytest writes a result when a test ends.

Their answered claims were saved, so they are shown like those of a broken test.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pytest_dbcluster.reporting.allure import allure_results, description
from pytest_dbcluster.reporting.allure.allure_results import ENVIRONMENT, RELEASE, SEVERAL
from pytest_dbcluster.reporting.allure.description import Shown
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.documents.claim_id import SEPARATOR, bare, key_of_test
from pytest_dbcluster.reporting.documents.run_document import CUT_SHORT
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.records import ClaimRecord

MESSAGE = "this test has not ended; these are the claims that it had decided"


def results(source: Source, known: Collection[str]) -> list[dict[str, Any]]:
    """A result for each test that has claims and no result, and has not ended according to ``run.json``.

    known: the history ids of the existing results.
    """
    ended = {record.test for record in source.claims}
    if source.run:
        ended = {test.test for test in source.run.tests if test.outcome != CUT_SHORT}
    tests: dict[str, list[ClaimRecord]] = {}
    for record in source.claims:
        if record.test not in ended:
            tests.setdefault(record.test, []).append(record)
    made = [_result(test, records) for test, records in tests.items()]
    return [result for result in made if result["historyId"] not in known]


def _result(test: str, records: Sequence[ClaimRecord]) -> dict[str, Any]:
    several = any(len({spec.release for spec in record.specs.values()}) > 1 for record in records)
    release = "" if several else records[0].release.partition(" ")[0]
    case = key_of_test(test) if several else records[0].claim_id.partition(SEPARATOR)[0]
    shown = [Shown(record, claim_chart.svg(record) or "") for record in records]
    file, _, name = test.partition("::")
    rounds = [drawn for record in records for many in record.rounds.values() for drawn in many]
    return {
        "uuid": allure_results.digest(test, "unfinished"),
        "name": description.name(bare(name, release) if release else name, shown),
        "fullName": test,
        "titlePath": file.split("/"),
        "testCaseId": allure_results.digest(case),
        "historyId": allure_results.digest(case, release),
        "status": "broken",
        "statusDetails": {"message": MESSAGE},
        "descriptionHtml": description.html("", shown),
        "labels": [{"name": ENVIRONMENT, "value": release or SEVERAL}],
        "parameters": [{"name": RELEASE, "value": release}] if release else [],
        "start": int(1000 * min((drawn.started for drawn in rounds), default=0.0)),
        "stop": int(1000 * max((drawn.started + drawn.wall for drawn in rounds), default=0.0)),
    }

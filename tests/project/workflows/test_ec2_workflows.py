"""The workflows that spend money on Amazon EC2, or end what did: who may start them, and what their roles permit."""

from __future__ import annotations

import argparse
import json
import re
import shlex

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.hosts.provisioners.ec2 import policy
from pytest_dbcluster.plugin import command_line
from tests.support.command import ROOT
from tests.support.workflows import FOLDER, read

AWS = ROOT / ".github" / "aws"
RUN, REAPER = "ec2-example.yml", "ec2-reaper-example.yml"
ROLES = {RUN: ("run", "ec2", "vars.AWS_ROLE"), REAPER: ("reaper", "ec2-reaper", "vars.AWS_REAPER_ROLE")}
ISSUER = "token.actions.githubusercontent.com"
CREDENTIALS = "aws-actions/configure-aws-credentials"
SECONDS = {"h": 3600, "min": 60}


def job(name):
    """The one job of a workflow."""
    (found,) = read(FOLDER / name)["jobs"].values()
    return found


def steps(name, key):
    """The steps of a workflow that have a key, such as ``run``."""
    return [step for step in job(name)["steps"] if key in step]


def command(name, program):
    """The words of the one step of a workflow that runs a program."""
    (found,) = [shlex.split(step["run"]) for step in steps(name, "run") if f"bin/{program} " in step["run"]]
    return found


def document(name):
    """A policy of a role."""
    return json.loads((AWS / name).read_text())


@pytest.mark.parametrize("workflow", ROLES)
def test_a_role_is_given_to_one_environment_of_one_repository(workflow):
    """The trust policy names the environment of the job, which asks for approval, and no wildcard."""
    name, environment, _ = ROLES[workflow]
    (statement,) = document(f"{name}-trust.json")["Statement"]

    assert job(workflow)["environment"] == environment
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Principal"] == {"Federated": f"arn:aws:iam::ACCOUNT_ID:oidc-provider/{ISSUER}"}
    assert statement["Condition"] == {
        "StringEquals": {
            f"{ISSUER}:aud": "sts.amazonaws.com",
            f"{ISSUER}:sub": f"repo:OWNER/REPOSITORY:environment:{environment}",
        }
    }
    assert "*" not in (AWS / f"{name}-trust.json").read_text()


def test_the_permissions_of_the_roles_are_what_the_command_prints():
    """The files are those of `dbcluster ec2 policy`: a new request of the code changes both."""
    assert document("run-permissions.json") == policy.document()
    assert document("reaper-permissions.json") == policy.document(reaper=True)


@pytest.mark.parametrize("workflow", ROLES)
def test_a_job_has_a_token_and_no_secret(workflow):
    """The right to a token is that of the job alone, its role is a variable, and no secret is used."""
    (credentials,) = [step for step in steps(workflow, "uses") if step["uses"].startswith(CREDENTIALS)]

    assert read(FOLDER / workflow)["permissions"] == {"contents": "read"}
    assert job(workflow)["permissions"] == {"contents": "read", "id-token": "write"}
    assert credentials["with"]["role-to-assume"] == f"${{{{ {ROLES[workflow][2]} }}}}"
    assert credentials["with"]["mask-aws-account-id"] is True
    assert "secrets." not in (FOLDER / workflow).read_text()


def test_nothing_but_a_person_or_the_clock_starts_them():
    """A pull request, whose code would run with the role, starts neither; money is spent by hand alone."""
    assert set(read(FOLDER / RUN)["on"]) == {"workflow_dispatch"}
    assert set(read(FOLDER / REAPER)["on"]) == {"schedule", "workflow_dispatch"}


@pytest.mark.parametrize("workflow", ROLES)
def test_no_text_of_an_input_becomes_a_command(workflow):
    """Inputs reach commands as variables, each in quotes."""
    for step in steps(workflow, "run"):
        assert "${{" not in step["run"]
        for name in step.get("env", {}):
            assert re.findall(rf".?\${name}.?", step["run"]) == [f'"${name}"']


def test_a_run_has_a_cap_and_ends_before_everything_that_would_cut_it_off():
    """Run budget < time to live, run budget < job < credentials: the run itself ends its instances."""
    words = command(RUN, "pytest")
    number, unit = re.fullmatch(r"(\d+)(\w+)", words[words.index("--db-ec2-ttl") + 1]).groups()
    budget = int(words[words.index("--db-run-budget") + 1])
    (credentials,) = [step for step in steps(RUN, "uses") if step["uses"].startswith(CREDENTIALS)]
    job_seconds = 60 * job(RUN)["timeout-minutes"]

    assert words[words.index("--db-max-cost") + 1] == "$MAX_COST"
    assert budget < int(number) * SECONDS[unit] < job_seconds < credentials["with"]["role-duration-seconds"]


def test_a_run_is_not_cut_off_by_the_next_one():
    """Runs wait for each other, so that a second one does not leave the first one's instances."""
    for workflow in ROLES:
        assert read(FOLDER / workflow)["concurrency"]["cancel-in-progress"] is False


def test_what_a_cancelled_run_left_is_ended_in_the_same_job():
    """The step runs whatever became of the measurement."""
    (reap,) = [step for step in steps(RUN, "run") if "dbcluster reap" in step["run"]]

    assert reap["if"] == "always()"


@pytest.mark.parametrize("workflow", ROLES)
def test_the_commands_have_the_options_that_they_use(workflow):
    """The parsers of `dbcluster` and of pytest's options take each command as it stands."""
    commands = [shlex.split(step["run"].removeprefix(".venv/bin/")) for step in steps(workflow, "run")]
    parsed = [main.parser(words[1:]).parse_args(words[1:]) for words in commands if words[0] == "dbcluster"]

    assert len(parsed) >= 2
    if workflow == RUN:
        options = argparse.ArgumentParser()
        command_line.add_options(lambda _: options.add_argument)
        given, rest = options.parse_known_args(command(RUN, "pytest")[1:])
        assert rest == ["$CLAIMS", "-k", "$SELECT"]
        assert (given.db_provisioner, given.db_max_cost, given.db_ec2_ttl) == ("ec2", "$MAX_COST", "2h")


def test_the_reaper_ends_what_has_expired_and_nothing_else():
    """A run that is measuring is not disturbed, and no claim is measured with the reaper's role."""
    runs = [step["run"] for step in steps(REAPER, "run")]

    assert ".venv/bin/dbcluster reap --provisioner ec2 --expired" in runs
    assert not any("pytest" in run for run in runs)

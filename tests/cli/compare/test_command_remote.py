"""dbcluster compare on machines that ssh reaches, stand-in hosts with a load host of their own."""

from __future__ import annotations

import pytest

from pytest_dbcluster.reporting import schema
from tests.support import stand_ins
from tests.support.command import dbcluster
from tests.support.stand_ins import StandIns

pytestmark = pytest.mark.remote


def test_two_files_are_compared_elsewhere(tmp_path):
    """The sentence is that of a comparison on this machine; the results name the machines."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    for name, flush in (("current", 1), ("candidate", 2)):
        (tmp_path / f"{name}.cnf").write_text(f"[mysqld]\ninnodb_flush_log_at_trx_commit = {flush}\n")
    files = [f"--cnf={tmp_path / name}.cnf" for name in ("current", "candidate")]
    results = tmp_path / "results"

    with StandIns(count=1, load=1) as hosts:
        where = ["--provisioner=ssh", *(f"--db-host={name}" for name in hosts.servers)]
        where += [*(f"--db-load-host={name}" for name in hosts.loads), f"--db-ssh-config={hosts.config}"]
        done = dbcluster("compare", *files, *where, "--workload=mysqlslap:write", f"--results={results}", seconds=400)

    ends = {0: "candidate is no worse than current: ", 3: "candidate is worse than current: ", 4: "could not tell "}
    assert done.returncode in ends, done.stderr
    assert done.stdout.splitlines()[-1].startswith(ends[done.returncode])
    assert any(line.split() == ["innodb_flush_log_at_trx_commit", "1", "2"] for line in done.stdout.splitlines())
    claims = schema.read_claims(results)
    assert [claim.kind for claim in claims] == ["no_slower_than", "differs"] or done.returncode == 4
    assert all({"machine host1", "load"} <= claim.fingerprint.keys() for claim in claims)

"""``dbcluster doctor``: check this machine or other machines, or try a release on this machine."""

from __future__ import annotations

import argparse

from pytest_dbcluster.cli.clusters import add_elsewhere
from pytest_dbcluster.cli.doctor.findings import Finding, findings, machine_findings, text
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import printable
from pytest_dbcluster.hosts.given import EC2_TITLE, HelpText, add_ec2_options, remote_arguments
from pytest_dbcluster.hosts.provisioners.ec2 import checkup
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ssh.checkup import Checkups
from pytest_dbcluster.hosts.provisioners.ssh.leftovers import Leftovers
from pytest_dbcluster.spec import ReleaseName

NEEDED = ("account", "credentials", "quota", "prices", "clock")  # findings that a run on EC2 needs


def add_doctor(doctor: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster doctor`` to its parser."""
    doctor.set_defaults(run=run_doctor)
    doctor.usage = "%(prog)s [options]"
    doctor.add_argument_group("a release").add_argument(
        "--release",
        metavar="NAME:VERSION",
        help=HelpText(
            "fetch this release, start a small cluster of each topology, run each workload for a second, and "
            "print a report to send to us; the exit code is 1 if something failed",
            "try it, and print a report to send to us",
        ),
    )
    add_elsewhere(doctor)
    add_ec2_options(doctor.add_argument_group(EC2_TITLE).add_argument)


def run_doctor(arguments: argparse.Namespace) -> int:
    """``dbcluster doctor``: print the findings, or the report about a release.

    Returns 1 if a machine or an account is unusable, or if something failed with the release.
    """
    machines = remote_arguments(arguments, arguments.provisioner)
    if arguments.release:
        return _try_release(arguments)
    if arguments.provisioner == "ec2":
        found = checkup.findings(Account(arguments.region), machines["settings"])
        print(printable(text([Finding(one.name, one.value, one.problem) for one in found]), lines=True))
        return 1 if any(one.problem for one in found if one.name in NEEDED) else 0
    if arguments.provisioner != "ssh":
        print(printable(text(findings()), lines=True))
        return 0
    results = Checkups(Leftovers(**machines)).results()
    for number, one in enumerate(results):
        print("\n" * (number > 0) + printable(text(machine_findings(one)), lines=True))
    return 1 if any(one.problem for one in results) else 0


def _try_release(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.cli.doctor import release_trial

    if arguments.provisioner != "local":
        raise ConfigError(
            f"doctor --release tries a release on this machine; leave out --provisioner {arguments.provisioner}"
        )
    trial = release_trial.try_release(ReleaseName.parse(arguments.release))
    print(printable(trial.text(), lines=True))
    return 1 if trial.failed else 0

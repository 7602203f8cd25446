"""Copies of the logs of failed clusters, because a cluster's files are removed with it."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import DBClusterError, NodeDied, ProvisionError, SeriesVoid, WorkloadError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.redaction import redact

FILES = ("error.log", "my.cnf", "recover.log")  # in the directory of a node's host; copied after a failure
MOST = 2**20  # bytes that we keep of the end of each file
FAILURES = (ProvisionError, WorkloadError, SeriesVoid)  # errors that a log may explain


class KeptLogs:
    """Copies logs to ``directory/TEST/CLUSTER/NODE/``. ``test``: the id of the current test."""

    def __init__(self, directory: Path, test: str = "run") -> None:
        self.directory = directory
        self.test = test
        self._last: BaseException | None = None

    def keep(self, cluster: str, hosts: Mapping[str, Host], error: BaseException, files: Sequence[str] = FILES) -> None:
        """Copy the logs of a cluster that failed with ``error``, and name the copies in its message.

        hosts: name of the copies -> host. files: names in the hosts' directories; missing files are skipped. Does
        nothing for an error whose logs were kept already, and for one that no log explains. Passwords become ``***``.
        If a file cannot be read or written, it is skipped, so that it does not hide the error.
        """
        if not isinstance(error, FAILURES) or error is self._last:
            return
        self._last = error
        with contextlib.suppress(OSError):
            directory = self._fresh(cluster)
            copies = {}
            for name, host in hosts.items():
                for file in files:
                    if copy := _copy_end(host, file, directory / name / file):
                        copies[f"{host.directory}/{file}"] = str(copy)
            if copies:
                _name_copies(error, copies, directory)

    def _fresh(self, cluster: str) -> Path:
        """The path of a new directory for the logs of one failure."""
        parent = self.directory / _file_name(self.test)
        for number in itertools.count(1):
            directory = parent / (_file_name(cluster) + (f"-{number}" if number > 1 else ""))
            with contextlib.suppress(FileExistsError):
                directory.mkdir(parents=True)
                return directory
        raise AssertionError("unreachable")


def _copy_end(host: Host, file: str, target: Path) -> Path | None:
    """Copy the end of a file of a host; None if there is nothing to copy."""
    try:
        content = host.pull(f"{host.directory}/{file}")[-MOST:]
    except (OSError, DBClusterError):
        return None
    if not content:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(redact(content.decode("utf-8", "replace")))
    return target


def _name_copies(error: BaseException, copies: Mapping[str, str], directory: Path) -> None:
    """Replace the paths of logs in an error message by those of their copies; without any, name the directory."""
    text = str(error)
    for path, copy in copies.items():
        text = text.replace(path, copy)
    if text == str(error):
        text += f"\nlogs of its nodes: {directory}"
    if isinstance(error, NodeDied):
        error.log = copies.get(error.log, error.log)
    error.args = (text, *error.args[1:])


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("_.")[-100:] or "_"

"""The lock on a results directory: two runs at the same time never write into the same one.

The lock is the kernel's (flock) on the directory itself. The kernel releases it whenever the process ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import pwd
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting import results_directory

FULL = (errno.ENOSPC, errno.EDQUOT)  # the verdicts of a run do not need the files, so a full disk stops no run
NO_LOCKS = (errno.ENOLCK, errno.EBADF, errno.EINVAL, errno.EOPNOTSUPP)  # a file system without this kind of lock
OPTION = "--db-results"


class ResultsLock:
    """A results directory into which only this run writes.

    directory: its path. line: says that another run holds the requested directory; empty if this run has it. made: the
    directories that this run created, the deepest one first.
    """

    def __init__(self, directory: Path, line: str, descriptor: int | None, made: Sequence[Path] = ()) -> None:
        self.directory = directory
        self._made = made
        self.line = line
        self._descriptor = descriptor

    def release(self) -> None:
        """Let other runs use the directory. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def leave_unused(self) -> None:
        """Release it, and remove the created directories that are still empty, because the run wrote nothing."""
        self.release()
        folders = [self.directory / name for name in results_directory.FOLDERS] if self.directory in self._made else []
        for directory in (*folders, *self._made):
            with contextlib.suppress(OSError):
                directory.rmdir()


def take(
    asked: Path,
    clear: Sequence[Callable[[Path], None]] = (results_directory.clear,),
    *,
    alone: bool = False,
    option: str = OPTION,
) -> ResultsLock:
    """Create and lock a results directory: ``asked``, or the first free one of ``asked-2``, ``asked-3`` and so on.

    ``clear``: functions that remove the results of an earlier run from it. alone: take only ``asked``, because the run
    needs its results. option: the option that chooses another directory. Raises ConfigError for a directory that cannot
    be written, or is in use where no other directory will do.
    """
    asked = Path(os.path.abspath(asked))  # noqa: PTH100  (resolve() would follow links, and name another directory)
    for number in itertools.count(1):
        directory = asked if number == 1 else asked.with_name(f"{asked.name}-{number}")
        made = [path for path in (directory, *directory.parents) if not path.exists()]
        try:
            descriptor = _lock(directory)
            if descriptor is None and alone:
                raise ConfigError(
                    f"another run writes into {asked}; wait until it has ended, or {_other_directory(option)}"
                )
            if descriptor is None:
                continue
            line = f"another run writes into {asked}, so the results of this run are in {directory}"
            lock = ResultsLock(directory, line if number > 1 else "", descriptor, made)
            _refuse_foreign(lock, option)
            _prepare(directory, clear)
        except OSError as error:
            if error.errno not in FULL:
                raise ConfigError(f"{_reason(directory, error)}; {_other_directory(option)}") from None
            return ResultsLock(directory, "", None)
        return lock
    raise AssertionError("unreachable")


def _lock(directory: Path) -> int | None:
    """Lock a directory and return its descriptor; None if another run has locked it. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            os.close(descriptor)
            raise
    return descriptor


def _prepare(directory: Path, clear: Sequence[Callable[[Path], None]]) -> None:
    """Remove the results of an earlier run, and try to write. Raises OSError."""
    for function in clear:
        function(directory)
    for path in (directory, *(directory / name for name in results_directory.FOLDERS)):
        path.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass


def _refuse_foreign(lock: ResultsLock, option: str) -> None:
    """Raise ConfigError for a directory with files that a run would remove, although no run has written them."""
    if named := results_directory.foreign_file(lock.directory):
        lock.release()
        raise ConfigError(
            f"{lock.directory} has {named}, which no run has written; a run would remove it: {_other_directory(option)}"
        )


def _other_directory(option: str) -> str:
    return f"choose another one with {option} DIR"


def _reason(directory: Path, error: OSError) -> str:
    """The message for a directory that cannot be written: the reason, and the path that is in the way."""
    path = Path(os.fsdecode(error.filename)) if error.filename else directory
    # os.path: unlike Path.exists it works for directories that we may not enter.
    in_the_way = next((part for part in (path, *path.parents) if os.path.exists(part)), directory)  # noqa: PTH110
    if os.path.isdir(in_the_way):  # noqa: PTH112  (as above)
        try:
            owner = pwd.getpwuid(in_the_way.stat().st_uid).pw_name
        except (KeyError, OSError):
            owner = "another user"
        return f"cannot write results into {directory}: {error.strerror} ({in_the_way} belongs to {owner})"
    return f"cannot write results into {directory}: {in_the_way} is a file, not a directory"

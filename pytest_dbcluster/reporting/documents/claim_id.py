"""What identifies a claim over many runs.

A *claim id* is text that is the same in each run, on each release and on each machine. It has the file and the name of
the test with its parameters, the claim, and the workload. A workload of files has their digest in it, so changed files
begin another history. It has neither the release nor directories, so a suite may move.
The margin of a claim is left out too: a stricter claim continues the history of its ratio.

Two claims of one run have the same id only on two releases. If two tests could break this, the run refuses them before
the first test. If a test makes the same claim twice, it is refused before the second one draws a round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

SEPARATOR = " | "
NO_LIMIT = "no limit"


def claim_id(test: str, releases: Iterable[str], claim: str, load: str, content: str = "") -> str:
    """The id of a claim.

    test: node id. releases: on which the test may have run, such as ``mariadb:10.11``. claim: the claim without
    its margin (``Claim.identity``). load: the workload's name. content: the digest of its files; empty without files.
    """
    return SEPARATOR.join([key_of_test(test, *releases), claim, f"{load} {content}".strip()])


def key_of_test(test: str, *releases: str) -> str:
    """The part of a claim id that depends only on the test: ``test_flush::test_flush_2[write]``."""
    for release in releases:
        test = bare(test, release)
    file, colons, name = test.partition("::")
    return f"{PurePosixPath(file).stem}{colons}{name}"


def without(identity: str, words: Iterable[str]) -> str:
    """A claim id without these words, to compare claims that differ in them: ``galera3`` and ``standalone1``.

    It is a key, not a text for readers. A word is removed with its separator, as in ``_galera3``. It may be a word of a
    test, a parameter or a variant.
    """
    for word in sorted(words, key=len, reverse=True):
        identity = re.sub(rf"[-_]?(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", "", identity)
    return identity.replace("[-", "[").replace("[]", "")


def bare(test: str, release: str) -> str:
    """A test's node id without the release among its parameters: the same on all releases."""
    head, bracket, parameters = test.partition("[")
    # pytest appends _0, _1 ... to equal ids, such as those of two directories of one release.
    left = re.sub(rf"(^|-){re.escape(release)}(_\d+)?(?=-|$)", "", parameters.removesuffix("]"), count=1)
    return f"{head}[{left.removeprefix('-')}]" if bracket and left else head


def join_distinct(values: Iterable[str]) -> str:
    """The one value of all variants, or the different ones joined by ``, ``; an empty one of them is ``no limit``."""
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else ", ".join(value or NO_LIMIT for value in different)

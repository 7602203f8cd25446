"""The keys that we ship, and files that have another key."""

from __future__ import annotations

import base64
import dataclasses
import re

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases.vendors import signing_key
from pytest_dbcluster.releases.vendors.repository import ARCHIVES, REPOSITORIES
from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS

SIGNERS = [signer for archive in TARBALLS.values() for signer in archive.signers]
ALL = tuple(dict.fromkeys([*REPOSITORIES.values(), *ARCHIVES.values(), *SIGNERS]))
MYSQL, MARIADB = REPOSITORIES["mysql", "8.4"], REPOSITORIES["mariadb", "11.4"]


def binary(text):
    """The packets of an armored key."""
    body = text.partition(b"\n\n")[2].partition(b"\n=")[0]
    return base64.b64decode(body.replace(b"\n", b""))


@pytest.mark.parametrize("repository", ALL, ids=lambda repository: f"{repository.title} {repository.key.stem}")
def test_a_shipped_key_has_the_pinned_fingerprint(repository):
    """Each file has one primary key, and it is the one of its vendor."""
    assert signing_key.fingerprints(signing_key.check(repository)) == [repository.fingerprint]
    assert signing_key.fingerprints(repository.key.read_bytes()) == [repository.fingerprint]


def test_a_binary_key_has_the_same_fingerprint():
    """The armor is only an encoding."""
    assert signing_key.fingerprints(binary(MYSQL.key.read_bytes())) == [MYSQL.fingerprint]


def test_another_key_is_refused_with_both_fingerprints():
    """The message names the vendor and its repository, so that the user knows what is not fetched."""
    wrong = dataclasses.replace(MYSQL, key=MARIADB.key)

    with pytest.raises(ProvisionError) as caught:
        signing_key.check(wrong)
    for fact in (MARIADB.fingerprint, MYSQL.fingerprint, "MySQL signs with", "MySQL's repository mysql-8.4-lts"):
        assert fact in str(caught.value)


def test_a_second_key_in_the_file_is_refused(tmp_path):
    """Apt would accept signatures of both."""
    both = tmp_path / "both.gpg"
    both.write_bytes(binary(MYSQL.key.read_bytes()) + binary(MARIADB.key.read_bytes()))

    with pytest.raises(ProvisionError, match=f"{MYSQL.fingerprint} and {MARIADB.fingerprint}"):
        signing_key.check(dataclasses.replace(MYSQL, key=both))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda content: content[:-7], "is truncated"),
        (lambda content: b"\x00" + content, "byte 0 begins no packet"),
        (lambda content: b"\x9b" + content, "the packet at byte 0 has no length"),
        (lambda content: b"\xc6\xe1" + content, "the packet at byte 0 comes in parts|comes in parts"),
        (lambda content: b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n(!)\n-----END", "its armor is no base64"),
    ],
)  # fmt: skip
def test_a_damaged_key_is_refused(tmp_path, damage, why):
    """The message says what is wrong with the file of which vendor."""
    file = tmp_path / "damaged.gpg"
    file.write_bytes(damage(binary(MYSQL.key.read_bytes())))

    with pytest.raises(ProvisionError, match=f"^the key of MySQL, {re.escape(str(file))}, is damaged: .*({why})"):
        signing_key.check(dataclasses.replace(MYSQL, key=file))


def test_a_key_that_is_missing_is_named(tmp_path):
    """A package without its data files is no reason to trust anybody."""
    with pytest.raises(ProvisionError, match=r"cannot read the key of MySQL, .*/none: No such file"):
        signing_key.check(dataclasses.replace(MYSQL, key=tmp_path / "none"))

"""Files with OpenPGP keys: each has exactly one key, and it has the pinned fingerprint.

We compute the fingerprint ourselves, because apt checks signatures with gpgv or sqv, and neither lists keys.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pytest_dbcluster.errors import ProvisionError

_ARMOR = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
_PUBLIC_KEY = 6  # the tag of a primary key


class Signed(Protocol):
    """A source whose files are signed: a vendor's repository, or a signer of its tarballs."""

    @property
    def vendor(self) -> str:
        """The name of the vendor."""

    @property
    def title(self) -> str:
        """The name of the source in messages."""

    @property
    def fingerprint(self) -> str:
        """The pinned fingerprint of its key."""

    @property
    def key(self) -> Path:
        """The file with this key."""


def check(source: Signed) -> bytes:
    """The key of a source, without armor. Raises ProvisionError if its file has any other key than the pinned one."""
    try:
        content = source.key.read_bytes()
        found = fingerprints(content)
    except OSError as error:
        raise ProvisionError(f"cannot read the key of {source.vendor}, {source.key}: {error.strerror}") from error
    except ValueError as error:
        raise ProvisionError(f"the key of {source.vendor}, {source.key}, is damaged: {error}") from error
    if found != [source.fingerprint]:
        raise ProvisionError(
            f"{source.key} has the key {' and '.join(found) or 'of nobody'}, but {source.vendor} signs with "
            f"{source.fingerprint}: we fetch nothing from {source.title}"
        )
    return _binary(content)


def fingerprints(content: bytes) -> list[str]:
    """The fingerprints of the primary keys in a file, armored or binary. Raises ValueError for a damaged file."""
    return [
        hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest().upper()
        for tag, body in _packets(_binary(content))
        if tag == _PUBLIC_KEY
    ]


def _binary(content: bytes) -> bytes:
    """The content without its armor: lines of base64 after an empty line, then a line with a checksum."""
    if not content.lstrip().startswith(_ARMOR):
        return content
    block = content.partition(_ARMOR)[2].partition(b"-----END")[0].replace(b"\r", b"")
    lines = block.partition(b"\n\n")[2].split(b"\n")
    try:
        return base64.b64decode(b"".join(line for line in lines if not line.startswith(b"=")), validate=True)
    except binascii.Error as error:
        raise ValueError(f"its armor is no base64 ({error})") from error


def _packets(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of each packet (RFC 9580, section 4.2)."""
    at = 0
    while at < len(content):
        first = content[at]
        if not first & 0x80:
            raise ValueError(f"byte {at} begins no packet")
        if first & 0x40:
            tag, (size, length) = first & 0x3F, _new_length(content, at + 1)
        else:
            octets = 1 << (first & 3)
            if octets > 4:
                raise ValueError(f"the packet at byte {at} has no length")
            tag, size, length = first >> 2 & 0xF, int.from_bytes(content[at + 1 : at + 1 + octets], "big"), octets
        body = content[at + 1 + length : at + 1 + length + size]
        if len(body) != size:
            raise ValueError(f"the packet at byte {at} is truncated")
        yield tag, body
        at += 1 + length + size


def _new_length(content: bytes, at: int) -> tuple[int, int]:
    """The length of a packet's body, and the octets of that length, in the current format."""
    first = content[at] if at < len(content) else 0
    if first < 192:
        return first, 1
    if first < 224:
        return ((first - 192) << 8) + int.from_bytes(content[at + 1 : at + 2], "big") + 192, 2
    if first == 255:
        return int.from_bytes(content[at + 1 : at + 5], "big"), 5
    raise ValueError(f"the packet at byte {at} comes in parts")

"""The content of the image of an exact version that only a vendor's archive of tarballs has.

The image has this machine's shell and tools. It has a portable copy of the release where MySQL's manual puts a tarball.
"""

from __future__ import annotations

from pathlib import Path

from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioners.container import system_files
from pytest_dbcluster.hosts.provisioners.container.root_file_system import RootFileSystem
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import Offer
from pytest_dbcluster.releases.portable import portable_copy
from pytest_dbcluster.releases.vendors.tarball_archive import TarballArchive

PLACE = "usr/local/mysql"


def make(offer: Offer, archive: TarballArchive, tar: Path, progress: Report) -> RootFileSystem:
    """Make the tar of an image from a tarball, which the cache keeps. Raises ProvisionError or Unsupported."""
    release = fetched.fetch_tarball(offer, archive, progress)
    home = release.bin.parent
    programs = {path.name: path for pattern in offer.programs for path in sorted(release.bin.glob(pattern))}
    copied = portable_copy.make(offer.product, home, home, programs, progress)
    with tar.open("wb") as file:
        system_files.write({**system_files.find(), PLACE: copied}, file)
    return RootFileSystem(release.version, {}, "", release.source)

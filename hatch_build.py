"""The build: the package gets the links of the repository that publishes it.

The release workflow sets ``DBCLUSTER_REPOSITORY`` to the address, ``https://github.com/OWNER/NAME``. An index shows
these links, and README.md, whose relative links become links to the tag of the version. A build without the address has
no links, and README.md as it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "DBCLUSTER_REPOSITORY"
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
RELATIVE_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s]+)")
PICTURES = (".gif", ".jpg", ".png", ".svg")


def links(repository: str, version: str) -> dict[str, str]:
    """The links of the package on an index, name -> URL."""
    owner, name = repository.split("/")[-2:]
    return {
        "Homepage": repository,
        "Documentation": f"https://{owner.lower()}.github.io/{name}/",  # docs.yml publishes it
        "Source": repository,
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Security": f"{repository}/blob/v{version}/SECURITY.md",
    }


def with_absolute_links(text: str, repository: str, version: str) -> str:
    """A Markdown text whose relative links lead into the repository at the tag of the version; code stays as it is."""

    def absolute(found: re.Match[str]) -> str:
        kind = "raw" if found[1].endswith(PICTURES) else "blob"
        return f"]({repository}/{kind}/v{version}/{found[1]}"

    parts = FENCED.split(text)
    parts[::2] = [RELATIVE_LINK.sub(absolute, part) for part in parts[::2]]
    return "".join(parts)


class Metadata(MetadataHookInterface):
    """Fills the dynamic fields ``urls`` and ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both fields."""
        repository = os.environ.get(VARIABLE, "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if repository:
            metadata["urls"] = links(repository, metadata["version"])
            text = with_absolute_links(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

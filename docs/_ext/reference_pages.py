"""A Sphinx extension: the parts of the reference that come from the code of the package.

When a build begins, it writes them as MyST files into ``reference/generated``; pages of ``reference`` include them. So
a new option, counter or reason is on the site without a change of a page. It also defines a directive and a role for
each kind of entry, such as ``{counter}`fsyncs```.
"""

from __future__ import annotations

from pathlib import Path

import claim_entries
import command_entries
import place_entries
import result_entries
from entries import write
from sphinx.application import Sphinx

KINDS = ("claim", "counter", "metric", "provisioner", "proxy", "reason", "release", "storage", "topology", "workload")
# File -> the function that makes its text.
PARTS = {
    "options.md": command_entries.options,
    "claims.md": claim_entries.claims,
    "counters.md": claim_entries.counters,
    "metrics.md": claim_entries.metrics,
    "messages.md": claim_entries.messages,
    "topologies.md": place_entries.topologies,
    "proxies.md": place_entries.proxies,
    "provisioners.md": place_entries.provisioners,
    "releases.md": place_entries.releases,
    "servers.md": place_entries.servers,
    "storage.md": place_entries.storage,
    "workloads.md": place_entries.workloads,
    "files.md": result_entries.files,
    "run-fields.md": result_entries.run_fields,
    "claim-fields.md": result_entries.claim_fields,
    "ec2-permissions.md": result_entries.permissions,
}


def write_parts(directory: Path) -> None:
    """Write every part into a directory."""
    write(directory, {name: make() for name, make in PARTS.items()})


def setup(app: Sphinx) -> dict[str, object]:
    """Define the directives and roles, and write the parts when the build begins."""
    for kind in KINDS:
        app.add_object_type(kind, kind, f"pair: %s; {kind}", objname=kind)
    app.connect("builder-inited", lambda built: write_parts(Path(built.srcdir) / "reference" / "generated"))
    return {"version": "1", "parallel_read_safe": True}

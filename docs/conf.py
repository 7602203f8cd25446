"""The configuration of Sphinx. ``make docs`` builds the site; it needs no network."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "pytest-dbcluster"
author = "the authors of pytest-dbcluster"
release = importlib.metadata.version(project)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_argparse_cli",
    "sphinx_copybutton",
    "reference_pages",
    "published_pages",
]
# Parts of pages, which other pages include.
exclude_patterns = ["_build", "_ext", "reference/generated", "published/generated"]

html_theme = "furo"
html_title = f"pytest-dbcluster {release}"
html_copy_source = False
html_show_copyright = False
smartquotes = False  # it would turn the dashes of options into one

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
# Shell sessions show a prompt, which no reader wants to copy.
copybutton_prompt_text = "$ "

# The names of Python's documentation. The file is a copy, so that a build loads nothing.
intersphinx_mapping = {"python": ("https://docs.python.org/3", "python-objects.inv")}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
nitpicky = True
# Types in signatures that are not public names.
nitpick_ignore_regex = [
    ("py:.*", r"pytest_dbcluster\..*"),
    ("py:class", r"Cluster|Event|MeasureSession|Host|LoadedFailover|Measurement|Release|Report|Workload"),
]

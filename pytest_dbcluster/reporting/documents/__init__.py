"""Documents: the files of a results directory that are about the whole run, and how documents become JSON.

A *document* is a typed value that is saved as JSON and read back. Each has a format number, so that a reader can say
what to do with a file of another version. Documents about claims and curves are in ``reporting.schema``.

- ``json_text``: a document as a line of JSON and back, with the sentence for a file that cannot be read.
- ``claim_id``: what identifies a claim over many runs, and the clusters that it is about.
- ``run_document``: ``run.json``, what a run was and how each of its tests ended.
- ``run_recorder``: writes ``run.json`` while the run is running. ``machine``: the machine and the commit in it.

A new file about the whole run gets a module here.
"""

__all__ = ["claim_id", "json_text", "machine", "run_document", "run_recorder"]

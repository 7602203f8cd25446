"""Documents: what a results directory has as JSON, for the whole run and for each claim and curve.

A *document* is a typed value that is saved as JSON and read back. Each has a format number, so a reader can say what to
do with a file of another version. ``reporting.schema`` makes the documents of claims and curves from records, and
records from them.

- ``json_text``: a document as a line of JSON and back, and the message about a file that cannot be read.
- ``record_documents``: the lines of ``claims.jsonl``, ``curves.jsonl`` and ledgers. ``messages``: what workers send.
- ``claim_id``: what identifies a claim over many runs, and the clusters that it is about.
- ``run_document``: ``run.json``, the run, its machine, and how each of its tests ended.
- ``run_recorder``: writes ``run.json`` while the run is running. ``machine``: the machine and the commit in it.

A new file about the whole run gets a module here.
"""

__all__ = ["claim_id", "json_text", "machine", "messages", "record_documents", "run_document", "run_recorder"]

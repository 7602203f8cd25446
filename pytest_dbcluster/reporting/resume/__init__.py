"""Resuming: a run takes over the answers of an earlier one from its results directory (``--db-resume``).

- ``digests``: what an answer depends on. A run takes over an answer only if none of that has changed.
- ``earlier``: the answers of the run that is continued, and what became of each of them.
- ``earlier_tries``: earlier tries of a claim that decided nothing.
- ``leavings``: removes what a killed run has left in its directory, such as a torn line, before the run goes on.
- ``recall``: looks up the answer of a claim when a test makes it.

A claim without an answer is measured again in a new random order; rounds of an interrupted claim are dropped.
"""

__all__ = ["digests", "earlier", "earlier_tries", "leavings", "recall"]

"""Spans: what a run does, and when. ``recorder.span`` is the one place that times its phases.

- ``recorder``: ``span``, a context for a phase; ``Recorder``, which adds their seconds and writes them to a file.
- ``trace_file``: the file, in Chrome's trace event format.
- ``time_spent``: the phases in groups, for the last lines of a run and for its page.
"""

__all__ = ["recorder", "time_spent", "trace_file"]

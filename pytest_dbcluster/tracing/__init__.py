"""Spans: what a run does, and when. ``recorder.span`` is the one place that times its phases.

- ``recorder``: ``span``, a context for a phase; ``Recorder``, which adds their seconds and writes them to a file.
- ``trace_file``: the file, in Chrome's trace event format.
"""

__all__ = ["recorder", "trace_file"]

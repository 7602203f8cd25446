"""The effects of several options, measured in the same rounds.

- ``effects``: ``Effects``, which a test gets of ``measure.factorial``, with an ``OptionEffect`` for each option.
"""

__all__ = ["effects"]

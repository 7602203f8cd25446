"""The hardware of instances: their types, and properties that affect figures.

- ``instance_type``: AWS's description of a type, with baseline and burst speeds.
- ``needs``: compares a cluster's needs with the type, and finds the nearest type.
- ``facts``: properties that affect figures, for the fingerprint and for messages; the round trips between zones.
- ``of_run``: all of these for the instances of a run; the provisioner uses only this module.
"""

__all__ = ["of_run"]

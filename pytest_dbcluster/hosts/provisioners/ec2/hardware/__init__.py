"""What an instance is made of: its type, and what figures depend on.

- ``instance_type``: what AWS says of a type, with the speeds that it keeps and those that it has for a time.
- ``needs``: whether a cluster's needs are those of the type; the nearest type for others.
- ``facts``: what figures depend on, for the fingerprint and for messages; the round trips between zones.
- ``of_run``: all of these for the instances of a run; the provisioner asks it alone.
"""

__all__ = ["of_run"]

"""What an instance is made of, and for how long: its type, what it lends, what figures depend on.

- ``instance_type``: what AWS says of a type, with the speeds that it has for ever and those that it lends.
- ``counts``: what an instance has used since its boot, as its kernel counts it.
- ``loans``: what is lent, and how much of it is left by our count.
- ``lent_speed``: asks all instances of a run, and CloudWatch where that is permitted.
- ``needs``: whether a cluster's needs are those of the type; the nearest type for others.
- ``facts``: what figures depend on, for the fingerprint; the round trips between zones.
- ``of_run``: all of these for the instances of a run; the provisioner asks it alone.
"""

__all__ = ["of_run"]

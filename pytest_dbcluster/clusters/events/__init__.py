"""Events: what happens to a cluster under load, such as a killed server. Users import them from the module events.

- ``event``: the base class ``Event``, what it returns, and which node it happens to.
- ``faults/``: faults, one file each.
- ``maintenance/``: what people do to a cluster while it serves, one file each.
- ``roles/``: another node becomes the writer.
- ``nothing``: the control, in which nothing happens.
- ``powers``: what events need of hosts.

An event proves from the servers and the kernel that it happened. A repetition without this proof is void.
"""

__all__ = ["event", "faults", "maintenance", "nothing", "powers", "roles"]

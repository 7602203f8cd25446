"""Hosts: where commands run. The only room that starts processes for a cluster.

A *host* runs commands, starts programs and holds files. A *provisioner* hands out a host for each node and takes it
back; ``offers`` says what its hosts can do. A *run* is everything that one process of ours has started: its directory
holds what is needed to end it, whatever happens to that process. The *supervisor* is a small process that starts the
servers and ends them when its owner is gone.

- ``host``: the base class, and the powers that a host may have.
- ``provisioner``, ``provisioners/``: what a provisioner is, and each of them.
- ``local_host``, ``local_run``, ``supervisor``: processes on this machine, which containers use for their files too.
- ``runs``: the runs on this machine, and their end.

A new provisioner is a module or folder in ``provisioners/``; its name is the name that users type.
"""

__all__ = ["host", "provisioner", "provisioners", "runs"]

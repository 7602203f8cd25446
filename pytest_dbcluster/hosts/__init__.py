"""Hosts: where commands run. Only this folder starts processes for a cluster.

A *host* runs commands, starts programs and holds files. A *provisioner* makes a host for each node and ends it later;
``offers`` lists the powers of its hosts. A *run* is everything that one process of ours has started. The directory of a
run records how to end the run, even after that process was killed. The *supervisor* is a small process that starts the
servers and ends them when its owner ends.

- ``host``: the base class, and the optional protocols of a host.
- ``provisioner``: the base class. ``provisioners/``: each provisioner.
- ``given``: the options for clusters on remote machines and on EC2.
- ``local_host``, ``local_run``, ``supervisor``: programs on this machine. Containers and guests also use them.
- ``agent``, ``agent_host``: the base of containers and guests: a program that starts programs (``agent.sh``), and
  shared files.
- ``guests``: virtual machines that are processes of this machine. ``subnets``: free addresses for networks.
- ``network``: the network between the hosts of one cluster, if its spec asks for one.
- ``runs``: the runs on this machine: list them, end one run or all dead ones.
- ``kept_logs``: copies of the logs of failed clusters.
- ``cleanup``: commands that remove a run's objects outside of its directory.

A new provisioner is a module or folder in ``provisioners/``; its name is the name that users type.
"""

__all__ = ["given", "guests", "host", "kept_logs", "network", "provisioner", "provisioners", "runs"]

"""Remote hosts: machines that we reach with OpenSSH, each with its own kernel, memory, disk and address."""

from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner

PROVISIONER = SshProvisioner

__all__ = ["PROVISIONER", "checkup", "leftovers"]

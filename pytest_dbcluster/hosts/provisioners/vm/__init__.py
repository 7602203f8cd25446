"""Virtual machines: hosts are guests of user-mode Linux, each with its own kernel, memory and network interface."""

from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner

PROVISIONER = GuestProvisioner

__all__ = ["PROVISIONER"]

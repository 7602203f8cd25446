"""Containers of this machine's engine as hosts, and the images that they are made of."""

from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner

PROVISIONER = ContainerProvisioner

__all__ = ["PROVISIONER", "engine", "images"]

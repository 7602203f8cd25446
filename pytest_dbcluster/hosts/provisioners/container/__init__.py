"""Container provisioner: hosts are containers of the engine on this machine. It also builds images for them."""

from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner

PROVISIONER = ContainerProvisioner

__all__ = ["PROVISIONER", "engine", "images"]

"""Amazon EC2: instances that are launched for a run, and reached over ssh as any machine elsewhere."""

from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner

PROVISIONER = Ec2Provisioner

__all__ = ["PROVISIONER", "aws", "checkup", "money", "plan", "policy", "reaper", "settings"]

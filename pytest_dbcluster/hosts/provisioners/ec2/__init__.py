"""Amazon EC2: the run launches instances and uses them over ssh like other remote machines."""

from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner

PROVISIONER = Ec2Provisioner

__all__ = ["PROVISIONER", "aws", "checkup", "money", "plan", "policy", "reaper", "settings"]

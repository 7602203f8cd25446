"""Messages on machines that cannot be used over ssh, as users read them."""

from __future__ import annotations

import platform

from pytest_dbcluster.hosts.provisioners.ssh import access, leftovers
from pytest_dbcluster.hosts.provisioners.ssh.access import Access
from pytest_dbcluster.hosts.provisioners.ssh.leftovers import Leftovers
from pytest_dbcluster.hosts.provisioners.ssh.machine import Facts
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from tests.support import golden

SSH = {
    "a login is refused": "user@db1: Permission denied (publickey).",
    "a name is unknown": "ssh: Could not resolve hostname db1: Name or service not known",
    "a machine is silent": "ssh: connect to host db1 port 22: Connection timed out",
    "a host key is unknown": "Host key verification failed.",
    "a host key is another one": "REMOTE HOST IDENTIFICATION HAS CHANGED! Host key verification failed.",
}
ONE = ["user@db1"]


def test_messages_on_machines_over_ssh(monkeypatch):
    """They say which machine it is, what was seen and what to do next."""
    monkeypatch.setattr(Access, "fingerprint", lambda self, target: "ED25519 SHA256:abc")
    seen = {title: Access().problem("user@db1", words) for title, words in SSH.items()}
    seen["an option is wrong"] = golden.message_of(access.parse_machines, "--db-host", ["-oProxyCommand=x"])
    seen["an address is wrong"] = golden.message_of(access.parse_machines, "--db-host", ["user@db1=here"])
    seen["a machine is named twice"] = golden.message_of(access.parse_machines, "--db-host", [*ONE, *ONE])
    seen["a file is missing"] = golden.message_of(Access, keys=access.Path("/none"))
    seen["a directory is wrong"] = golden.message_of(Access, base="relative")
    seen["no machine is named"] = golden.message_of(SshProvisioner)
    seen["a load host is a node"] = golden.message_of(SshProvisioner, machines=ONE, load_machines=ONE)
    seen["servers cannot be kept"] = golden.message_of(SshProvisioner, machines=ONE, keep=True)
    seen["another architecture"] = golden.message_of(
        Facts.read, "system Linux\narchitecture riscv64\n", "user@db1", 0.0
    )
    seen["an id is wrong"] = golden.message_of(Leftovers(machines=ONE).end, "4f g")
    seen["an answer is unknown"] = str(leftovers._answer_error("user@db1", ["what"]))

    golden.compare("ssh_refusals", seen, {f"Linux on {platform.machine()}": "Linux on ARCHITECTURE"})

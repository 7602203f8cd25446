"""Private subnets for networks of a run, and the attribute of its links."""

from __future__ import annotations

import ipaddress
import random
from operator import itemgetter
from pathlib import Path

# Otherwise a link gets an IPv6 address and sends packets of its own. A kernel without IPv6 refuses the attribute.
NO_IPV6 = "addrgenmode none" if Path("/proc/net/if_inet6").exists() else ""
SUBNETS = ipaddress.IPv4Network("10.128.0.0/9")
SUBNET_BITS = 20  # 4094 addresses: the maximum number of hosts in one run


def free_subnet() -> ipaddress.IPv4Network:
    """A random private subnet that overlaps no route of this machine."""
    taken = []
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        target, mask = (
            ipaddress.IPv4Address(int(word, 16).to_bytes(4, "little")) for word in itemgetter(1, 7)(line.split())
        )
        if int(mask):
            taken.append(ipaddress.IPv4Network(f"{target}/{mask}"))
    subnets = list(SUBNETS.subnets(new_prefix=SUBNET_BITS))
    random.SystemRandom().shuffle(subnets)
    return next(subnet for subnet in subnets if not any(subnet.overlaps(other) for other in taken))

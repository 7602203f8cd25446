"""Roles: another node becomes the writer, as planned or after a loss.

- ``hand_over``: which clusters can change their roles, and a planned change with its proof.
- ``switch_primary``: a planned change of the primary under load.
- ``promote``: a replica becomes the primary after the loss of the primary.
- ``fail_over``: a host without a server takes over after the loss of the server.
- ``loss``: what faults have in common that take a node away.
"""

__all__ = ["fail_over", "hand_over", "loss", "promote", "switch_primary"]

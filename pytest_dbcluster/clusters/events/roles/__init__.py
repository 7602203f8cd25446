"""Roles: another node becomes the writer, as planned or after a loss.

- ``hand_over``: which clusters can change their roles, and a planned change with its proof.
- ``switch_primary``: a planned change of the primary under load.
- ``promote``: a replica becomes the primary after the loss of the primary.
- ``loss``: what faults have in common that take a node away.
"""

__all__ = ["hand_over", "loss", "promote", "switch_primary"]

"""Evidence: what a message and a record say about the clusters of a question, besides its rounds.

- ``durability``: what a commit guarantees when it returns, and which variants may therefore be compared.
- ``blind_spots``: claims that stay inconclusive on this machine.
"""

__all__ = ["blind_spots", "durability"]

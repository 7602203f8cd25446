"""Evidence: what a message and a record say about the clusters of a question, besides its rounds.

- ``gather``: reads the evidence of a question from its running clusters.
- ``specs``: a variant as a value.
- ``durability``: what a commit guarantees when it returns, and which variants may therefore be compared.
- ``blind_spots``: claims that stay inconclusive on this machine.
"""

__all__ = ["blind_spots", "durability", "gather", "specs"]

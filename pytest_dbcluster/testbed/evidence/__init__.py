"""Evidence: the facts about the clusters of a question, besides its rounds, for its message and record.

- ``gather``: reads the evidence of a question from its running clusters.
- ``specs``: a variant as a value.
- ``durability``: what a commit guarantees when it returns, and so which variants may be compared.
- ``blind_spots``: claims that stay inconclusive on this machine.
"""

__all__ = ["blind_spots", "durability", "gather", "specs"]

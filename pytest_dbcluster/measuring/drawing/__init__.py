"""Drawing: the rounds of a measurement are run here, block by block. What their values say is not known here.

- ``block_drawing``: draws the next block that counts, checks the clusters, and knows when drawing must end.
- ``blocks``: the order that was drawn for the blocks, the rounds that count, and what was void.
- ``levels``: the same for several options, each of which has a level in every round.
- ``block_runner``: runs the rounds of one block.
- ``warm_up``: blocks that do not count, until rounds stop getting faster.
- ``pace``: the length of the rounds and their arrival rate.
- ``rules``: the run's options on drawing. ``reach``: whether a claim can reach its first look before its budget ends.
- ``round_source``: the interface that rounds come from. ``progress``: what is shown after each round.
"""

__all__ = [
    "block_drawing",
    "block_runner",
    "blocks",
    "levels",
    "pace",
    "progress",
    "reach",
    "round_source",
    "rules",
    "warm_up",
]

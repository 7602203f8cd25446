"""Programs of this machine for hosts that do not see its system: guests, containers and other machines.

- ``libraries``: the libraries that programs load here.
- ``portable_copy``: a release in a user's directory, copied into the cache with these libraries.
"""

__all__ = ["libraries", "portable_copy"]

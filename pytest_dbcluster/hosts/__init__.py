"""TODO hosts."""

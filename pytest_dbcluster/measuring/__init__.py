"""TODO measuring."""

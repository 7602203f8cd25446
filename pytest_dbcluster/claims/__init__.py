"""TODO claims."""

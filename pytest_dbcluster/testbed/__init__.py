"""TODO testbed."""

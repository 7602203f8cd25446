"""TODO topologies."""

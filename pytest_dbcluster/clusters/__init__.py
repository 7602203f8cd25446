"""TODO clusters."""

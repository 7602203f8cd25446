"""TODO plugin."""

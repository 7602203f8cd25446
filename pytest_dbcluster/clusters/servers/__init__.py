"""TODO servers."""

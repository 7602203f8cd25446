"""TODO dialects."""

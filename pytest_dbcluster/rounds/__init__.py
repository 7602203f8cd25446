"""TODO rounds."""

"""TODO provisioners."""

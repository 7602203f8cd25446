"""TODO proxies."""

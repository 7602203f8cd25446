"""Loads the modules of fixtures/, nothing else."""

pytest_plugins: list[str] = []

"""Performance claims about MariaDB and MySQL clusters, written as pytest tests and answered with an interval."""

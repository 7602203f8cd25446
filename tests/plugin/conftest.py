"""What runs of pytest inside of these tests import: pytester forgets it after each, and numpy does not bear that."""

import matplotlib.backends.backend_svg
import matplotlib.figure  # noqa: F401

"""The version of the package. It stands only here: the build reads it too."""

__version__ = "0.1.0"

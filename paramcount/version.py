"""The version of the package, which `paramcount --version` and written files name."""

__version__ = "0.1.0"

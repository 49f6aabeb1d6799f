"""Formats of output: tables in every format, numbers and ranges of indices as text."""

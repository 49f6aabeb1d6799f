"""Output: tables as text, Markdown, CSV, JSON, LaTeX and HTML; number formats; atomic file writes.

This package knows nothing about models.
"""

"""Output: tables as text, Markdown, CSV, JSON, LaTeX and HTML, numbers and ranges as text, and files that are written whole or not at all.

Nothing here knows what a table is about.
"""

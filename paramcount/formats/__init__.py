"""Readers of file formats: JSON, YAML, safetensors, GGUF and tokenizer files.

Every reader treats its file as hostile: it reads a limited amount, validates before use, runs no code and raises a
`ParamcountError` of one line.
"""

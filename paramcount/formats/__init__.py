"""Readers of file formats: JSON, YAML, safetensors, GGUF and tokenizer files.

Every reader takes its file as hostile: it reads a bounded amount, checks before it believes, runs nothing, and raises a
`ParamcountError` of one line.
"""

"""Readers of file formats: JSON, YAML, safetensors, GGUF and tokenizer files; and weight formats, one file each.

Every reader treats its file as hostile: it limits how much it reads, validates before use, runs no code and raises a
one-line `ParamcountError`.
"""

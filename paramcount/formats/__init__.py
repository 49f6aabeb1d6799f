"""Readers of file formats: JSON, YAML, safetensors, GGUF and tokenizer files, strict and bounded in what they read."""

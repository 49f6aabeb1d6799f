"""Checkpoint layouts: the model's tensors as the writers of files name and shape them.

Covers the libraries that write safetensors files (transformers in several versions, original releases) and llama.cpp's
GGUF converter.
"""

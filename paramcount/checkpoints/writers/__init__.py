"""Checkpoint layouts: how writers of files name and shape the tensors that a declaration declares.

The libraries that write safetensors files (transformers in several versions, original releases) and llama.cpp's GGUF converter.
"""

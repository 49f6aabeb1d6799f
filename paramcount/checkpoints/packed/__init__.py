"""Packed weights: which tensors of a quantised checkpoint represent which matrix, and how many bytes each takes.

GPTQ, AWQ, FP8, MXFP4 and the types of GGUF; every other method is refused by name.
"""

"""Packed weights: which tensors of a quantised checkpoint represent which matrix, and how many bytes each takes.

Supported are GPTQ, AWQ, FP8, MXFP4 and the types of GGUF; the error for any other method names it.
"""

"""Storage of quantised weights: which tensors a scheme packs, with which scales, in how many bytes.

This package reads `Tensor` rows and `quantization_config`, not files. `verify` matches file headers with the same
layouts.
"""

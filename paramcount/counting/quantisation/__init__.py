"""How quantised weights are stored: which tensors a scheme packs, what is stored with them, how many bytes that takes.

Knows declarations (`stored.Tensor`) and `quantization_config` of a config.json, no files: `verify` reads headers with the same layouts.
"""

"""Opening a checkpoint: find the files that a path stands for, read their headers, and report contradictions.

Only headers are read, and small samples of tensors that may be copies of each other.
"""

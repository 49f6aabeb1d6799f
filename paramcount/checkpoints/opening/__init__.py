"""Opening a checkpoint: what a path names, which files belong together, and whether they contradict each other.

Only headers are read, and small samples of tensors that may be copies of each other.
"""

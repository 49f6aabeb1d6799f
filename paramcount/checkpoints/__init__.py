"""Checkpoints on disk, compared with a model tensor by tensor. Only headers are read, plus a few values to compare tied copies.

`opening` reads the headers of a path, `packed` describes quantised weights as an unquantised file would store them, `writers` names the
model's tensors as the writer of the file does, `matching` pairs the two, and `findings` describes every difference.
"""

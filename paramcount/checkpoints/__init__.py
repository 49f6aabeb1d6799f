"""Checkpoints on disk, compared with a model tensor by tensor.

Only headers are read, and a few values to compare tied copies. `opening` reads the headers of the files at a path,
`packed` describes quantised weights as an unquantised file would store them, `writers` names the model's tensors as the
writer of the file does, `matching` pairs the two, and `findings` describes every difference.
"""

"""The life of a tensor: every operation in order, in shapes."""

"""GPT-2 written by hand from the paper and the released code: a NumPy forward pass that checks the declared one.

It deliberately shares no code with the declaration.
"""

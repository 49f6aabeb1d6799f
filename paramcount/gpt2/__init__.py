"""GPT-2 written by hand from the paper and the released code: a forward pass in NumPy that checks the declared one.

It shares no code with the declaration, which is the point of it.
"""

"""The closed vocabulary of operations.

Each is one class with its parameters, cost and computation, beside the function that declarations call; or one function
of arrays, if it has no weights and no cost: `make_step` makes both of it.
"""

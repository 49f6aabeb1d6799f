"""The closed vocabulary of operations.

Each is one class with its parameters, cost and computation, beside the function that declarations call. Adding an
operation means adding one class.
"""

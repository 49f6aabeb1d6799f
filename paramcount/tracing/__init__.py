"""Traces: every operation of a forward pass in order, with the shapes of its inputs, weights and output.

`run` checks the inputs and walks the declared flow, `trace` is the result as plain data, `render` makes tables of it. Drawings are
made from traces.
"""

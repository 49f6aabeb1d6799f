"""Traces: every operation of a forward pass in order, with the shapes of its inputs, weights and output.

`run` checks the input, `walk` records the steps, `trace` defines the result as data, and `render` makes tables of it.
Drawings are made from traces.
"""

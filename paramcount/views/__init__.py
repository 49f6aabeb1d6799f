"""Views: results as tables of one model, of one model by layer, part or tensor, of several models or of a directory.

A view takes loaded models and returns a `Table`, which `paramcount.output.tables` renders in every format.
"""

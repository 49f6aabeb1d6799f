"""Views: results as tables. One model, one model opened by layer, part or tensor, several models, two models, a directory of configs.

A view takes loaded models and returns a `Table`, which `paramcount.output.tables` renders in every format.
"""

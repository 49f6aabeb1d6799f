"""Checkpoints on disk, held against a declaration: what their headers say, tensor by tensor. No value is read but a few to compare copies.

A path is opened (opening), its packed weights are understood (packed), the declaration is named as the file's writer names it (writers), the
two are matched, and what is left over is told. `held` is what all of them speak of.
"""

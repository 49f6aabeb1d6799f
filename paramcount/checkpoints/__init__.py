"""Checkpoints on disk, held against a declaration: what their headers say, tensor by tensor. No value is read but a few to compare copies."""

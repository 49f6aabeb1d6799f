"""Hugging Face configs: from a config.json to the sizes of an architecture, as the reference implementation would read it.

`locate` finds the file (a path, a cache, the Hub), `config` decides which class it describes, `fields` reads each key, default or
derivation, and `multimodal` reads the language model out of a config with several parts. Nothing of a model's own code is run.
"""

"""Hugging Face configs: from a config.json to the sizes of an architecture, as the reference implementation reads it.

`locate` finds the file (a path, a cache, the Hub), `config` decides which class it describes, `fields` reads each key,
default or derivation, `key_warnings` reports ignored keys and missing sizes, and `multimodal` reads the language model
and the vision encoder of a multimodal config. `validity` says which changes of sizes the reference accepts, and
`partial` which sizes a check reads. No code of the model's author is run.
"""

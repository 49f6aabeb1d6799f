"""Sizes of an architecture: typed fields, their config.json keys, and the rules between them.

`types` and `fields` declare them. `derivations`, `layer_types`, `rotary_sizes`, `mixers` and `single_layers` compute
the sizes that have no key of their own. `rules` checks sizes against each other, `conditions` and `settings` check
config.json keys that no size depends on, `key_names` names sizes in errors about a config.json, and `values` parses and
formats values.
"""

from paramcount.lazy import find_lazily

__getattr__ = find_lazily(__name__, __file__)

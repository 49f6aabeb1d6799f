"""The zoo: one model, one YAML file, every number with its source; and what a name, a path or a mapping means.

`entries` is the schema of a file, `catalog` finds the files, `model` is what every other package takes, `names` resolves what a user
typed, `what_if` changes sizes, and `checks` compares a model with its reference and its published figures.
"""

from paramcount.zoo.catalog import CONFIGS, entry, families, ids, names_of, natural, path_of
from paramcount.zoo.entries import Entry, parse_entry, read_entry
from paramcount.zoo.model import Model, count_model, model_of_entry

__all__ = [
    "CONFIGS", "Entry", "Model", "count_model", "entry", "families", "ids", "model_of_entry", "names_of", "natural", "parse_entry", "path_of", "read_entry",
]  # fmt: skip

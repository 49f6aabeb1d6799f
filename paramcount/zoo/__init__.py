"""The zoo: one YAML file per model, every number with its source.

`entries` is the schema of a file, `catalog` finds the files, `model` is the type that every other package uses, `names`
and `aliases` resolve names, `what_if` changes sizes, and `checks` compares a model with its reference and its published
figures. `paramcount.zoo()` is a function of the API: the package can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from paramcount.lazy import PUBLIC_FUNCTIONS
from paramcount.zoo.catalog import (
    CONFIGS,
    find_built_in_family,
    find_path,
    list_families,
    list_ids,
    list_names,
    list_paths,
    load_all,
    load_entry,
    natural_sort_key,
)
from paramcount.zoo.entries import Entry, parse_entry, read_entry
from paramcount.zoo.model import Model, count_model, make_model

if TYPE_CHECKING:
    import pandas


class CallableModule(ModuleType):
    """This package, whose name `paramcount.zoo` is also that of a function."""

    def __call__(self, *, estimates: bool = False) -> pandas.DataFrame:
        frame: pandas.DataFrame = PUBLIC_FUNCTIONS["zoo"](estimates=estimates)
        return frame


sys.modules[__name__].__class__ = CallableModule

__all__ = [
    "CONFIGS",
    "Entry",
    "Model",
    "count_model",
    "find_built_in_family",
    "find_path",
    "list_families",
    "list_ids",
    "list_names",
    "list_paths",
    "load_all",
    "load_entry",
    "make_model",
    "natural_sort_key",
    "parse_entry",
    "read_entry",
]  # fmt: skip

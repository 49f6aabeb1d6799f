"""The data of the page about the whole zoo, which are part of the package.

`python -m tests.refresh_page` writes them, after a change of a built-in model or of what the page shows; it takes two
minutes. tests/test_explore_data.py says when it is needed.
"""

from __future__ import annotations

from paramcount.explore.models import export_models
from paramcount.explore.page import ZOO, compress
from paramcount.zoo import Model, list_ids, load_entry


def list_models() -> list[Model]:
    """The models of the page: all that are built in, without third-party estimates."""
    models = map(load_entry, list_ids(own=False))
    return [model for model in models if not model.estimate]


if __name__ == "__main__":
    ZOO.write_bytes(compress(export_models(list_models())))

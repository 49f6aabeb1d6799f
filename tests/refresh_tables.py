"""The tables of the built-in models that are part of the package: zoo.csv and others beside it.

`python -m tests.refresh_tables` writes them, after a change of an entry or of a column; it takes half a minute.
tests/test_zoo.py says when it is needed.
"""

from __future__ import annotations

import os

from paramcount.database import store
from paramcount.database.export import build_csv
from paramcount.database.tables import find_table
from paramcount.zoo import CONFIGS
from paramcount.zoo.packaged import PACKAGED

if __name__ == "__main__":
    os.environ |= {"PARAMCOUNT_CACHE": "", "PARAMCOUNT_CONFIGS": os.devnull}  # without the user's own entries
    vars(store)["IS_INSTALLED"] = False  # as in a checkout
    for name, file in PACKAGED.items():
        (CONFIGS / file).write_bytes(build_csv((find_table(name),)))

"""Sweeps: counts of many sizes of one model at once.

`axes` reads what each size takes. `sweep` goes through every combination in chunks, and `columns` derives counts as
polynomials, which are evaluated on int64 arrays. Checks are evaluated once for each distinct combination of the sizes
that they read (`paramcount.huggingface.validity`). `writers` and `render` are the output. `size` searches for the
sizes of a budget by the rules in `shapes`. `frames` counts the rows of a DataFrame, whose sizes `documents` reads as
from a config.json.
"""

from paramcount.sweeping.sweep import Sweep, make_sweep

__all__ = ["Sweep", "make_sweep"]

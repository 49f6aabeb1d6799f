"""The vocabulary of declarations: `from paramcount.declare import Data, ops, parts, sizes`.

`ops` has the operations that data flow through, `parts` what several architectures share, and `sizes` what is read of
a config.json.
"""

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

__all__ = ["Data", "ops", "parts", "sizes"]

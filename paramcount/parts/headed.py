"""A model whose forward pass, if asked to, ends before the LM head."""

from __future__ import annotations

from typing import Any

from paramcount import sizes
from paramcount.flow import Data


class Headed(sizes.Sizes):
    """A subclass adds `forward(tokens, head=True)`."""

    def body(c: Any, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

"""Settings of whatever stands for a config: an architecture, or a few sizes alone."""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, Unknown, norm


def get_setting(c: Any, name: str) -> Any:
    """A setting of an architecture; unknown if `c` only has sizes."""
    return getattr(c, name, Unknown(name))


def normalise(c: Any, x: Data, name: str) -> Data:
    """The norm of an architecture; of an unknown kind if `c` only has sizes."""
    return c.norm(x, name) if hasattr(c, "norm") else norm(x, name)

"""MXFP4: blocks of 32 values of four bits, each with a scale of eight bits.

Source: OCP Microscaling Formats 1.0, section 5.3.3, for E2M1, and section 5.4.1 for the scales.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from paramcount.formats.float8 import widen_float8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of the lower three bits; the fourth is the sign


def widen_mxfp4(array: Array, scales: Array) -> Array:
    """Values [..., 32 · blocks] as float32, from bytes [..., blocks, 16], lower half first, and scales [..., blocks].

    >>> import numpy as np
    >>> widen_mxfp4(np.full((1, 16), 0xA1, dtype="u1"), np.array([128], dtype="u1"))[:4].tolist()
    [1.0, -2.0, 1.0, -2.0]
    """
    import numpy as np

    table = np.array([*MAGNITUDES, *(-x for x in MAGNITUDES)], dtype=np.float32)
    values = np.stack((table[array & 15], table[array >> 4]), axis=-1).reshape(*scales.shape, -1)
    values *= widen_float8(scales, "F8_E8M0")[..., None]
    return values.reshape(*scales.shape[:-1], -1)

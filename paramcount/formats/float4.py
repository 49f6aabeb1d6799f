"""Values of four bits, E2M1, two per byte.

Source: OCP Microscaling Formats 1.0, section 5.3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of the lower three bits; the fourth is the sign


def widen_float4(array: Array) -> Array:
    """Values [..., 2 n] as float32 from bytes [..., n], the lower half of a byte first.

    >>> import numpy as np
    >>> widen_float4(np.array([0xA1, 0x7F], np.uint8)).tolist()
    [0.5, -1.0, -6.0, 6.0]
    """
    import numpy as np

    array = array.view(np.uint8)
    table = np.array([*MAGNITUDES, *(-x for x in MAGNITUDES)], dtype=np.float32)
    return np.stack((table[array & 15], table[array >> 4]), axis=-1).reshape(*array.shape[:-1], -1)

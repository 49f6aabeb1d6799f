"""Values of four and eight bits as float32: the formats of quantised weights and of their scales.

Source: OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats 1.0, section 5.3.3, for E2M1, and 5.4.1,
for E8M0. The formats with FNUZ have no infinities, no negative zero, and one more as bias: arXiv:2206.02915.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]


class Float8(NamedTuple):
    """A sign, an exponent and a fraction in eight bits."""

    fraction: int  # bits
    bias: int  # of the exponent
    specials: str  # "finite": one NaN and no infinity; "ieee"; "fnuz": the NaN is the negative zero


FORMATS = {
    "F8_E4M3": Float8(3, 7, "finite"),
    "F8_E5M2": Float8(2, 15, "ieee"),
    "F8_E4M3FNUZ": Float8(3, 8, "fnuz"),
    "F8_E5M2FNUZ": Float8(2, 16, "fnuz"),
}
DTYPES = (*FORMATS, "F8_E8M0")
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of the lower three bits of E2M1; the fourth is the sign


@cache
def list_values(dtype: str) -> Array:
    """The value of each of the 256 bytes, float32.

    >>> [float(list_values("F8_E4M3")[byte]) for byte in (0x38, 0x7E, 0x01)]
    [1.0, 448.0, 0.001953125]
    >>> float(list_values("F8_E8M0")[127])
    1.0
    """
    import numpy as np

    if dtype == "F8_E8M0":
        return np.array([*(2.0 ** (byte - 127) for byte in range(255)), np.nan], dtype=np.float32)
    fraction, bias, specials = FORMATS[dtype]
    values = []
    for byte in range(256):
        sign, exponent, rest = byte >> 7, (byte & 0x7F) >> fraction, byte & ((1 << fraction) - 1)
        mantissa = rest / (1 << fraction) + (exponent > 0)
        value = (-1) ** sign * mantissa * 2.0 ** (max(exponent, 1) - bias)
        if (specials == "finite" and byte & 0x7F == 0x7F) or (specials == "fnuz" and byte == 0x80):
            value = np.nan
        elif specials == "ieee" and exponent == 31:
            value = np.nan if rest else (-1) ** sign * np.inf
        values.append(value)
    return np.array(values, dtype=np.float32)


def widen_float8(array: Array, dtype: str) -> Array:
    """Bytes as float32.

    >>> import numpy as np
    >>> widen_float8(np.array([0x40, 0xBC], dtype="u1"), "F8_E4M3").tolist()
    [2.0, -1.5]
    """
    return list_values(dtype)[array]


def widen_float4(array: Array) -> Array:
    """Values [..., 2 n], two per byte, as float32 from bytes [..., n], the lower half of a byte first.

    >>> import numpy as np
    >>> widen_float4(np.array([0xA1, 0x7F], np.uint8)).tolist()
    [0.5, -1.0, -6.0, 6.0]
    """
    import numpy as np

    array = array.view(np.uint8)
    table = np.array([*MAGNITUDES, *(-x for x in MAGNITUDES)], dtype=np.float32)
    return np.stack((table[array & 15], table[array >> 4]), axis=-1).reshape(*array.shape[:-1], -1)

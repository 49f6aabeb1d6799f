"""What an index promises where no shard is there to be read: whether its total_size can be the bytes of the tensors that it names."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from paramcount.checkpoints.matching import Matches
from paramcount.checkpoints.quantised import Unpacked
from paramcount.errors import ParamcountError
from paramcount.scales import SCHEMES, scales_of
from paramcount.stored import Tensor

WIDTHS = (2, 4, 1, 8)  # bytes of a value, the usual one first
SCALE_BITS = {"fp8": 32, "mxfp4": 8}
VALUE_BITS = {"fp8": 8, "mxfp4": 4}


def promise(matches: Matches, content: Unpacked, total_size: int | None) -> str:
    """How an index's total_size is the bytes of its tensors; nothing where it says none.

    Raises: ParamcountError where no width of the values gives it.
    """
    if total_size is None:
        return ""
    tensors = [(tensor, packed_as(content.tensors[name].held)) for name, tensor in matches.there.items()]
    packed = sum(bits_of(tensor, method) for tensor, method in tensors if method) // 8
    plain = [tensor for tensor, method in tensors if not method]
    values, buffers = elements(plain), elements(tensor for tensor in plain if tensor.role != "parameter")
    ways = [(width, width) for width in WIDTHS] + [(2, 4)] * bool(buffers)
    for width, beside in ways:
        if packed + (values - buffers) * width + buffers * beside == total_size:
            kept = f"{values:,} values of {width} bytes"
            return f"total_size {total_size:,} is {f'packed weights of {packed:,} bytes and ' if packed else ''}{kept}"
    raise ParamcountError(
        f"total_size {total_size:,} is no size of {values:,} values{' beside packed ones' if packed else ''}", accepted="1, 2, 4 or 8 bytes each"
    )


def elements(tensors: Iterable[Tensor]) -> int:
    return sum(prod(tensor.shape) for tensor in tensors)


def packed_as(held: tuple[str, ...]) -> str:
    """The scheme of paramcount.scales that a tensor's names in the file follow; nothing for one that stands alone."""
    if len(held) == 1:
        return ""
    return "fp8" if any(name.endswith("_scale_inv") for name in held) else "mxfp4"


def bits_of(tensor: Tensor, method: str) -> int:
    """Bits of one copy of a tensor and its scales."""
    scales = scales_of(tensor, SCHEMES[method])
    return prod(tensor.shape) * VALUE_BITS[method] + (prod(scales.shape) * SCALE_BITS[method] if scales else 0)

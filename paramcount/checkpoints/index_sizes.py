"""Whether the total_size of an index without shards can be the bytes of the tensors that it names.

An index has neither shapes nor types. Shapes are taken from the model. All values have one type, except small tensors that some writers store
in another: buffers, causal masks, norms, routers, and the vectors of state-space layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import NamedTuple

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.matching import Matches
from paramcount.checkpoints.packed.configs import read_quantization
from paramcount.checkpoints.packed.quantised import Unpacked
from paramcount.counting.quantisation.configs import QuantizationScheme
from paramcount.counting.quantisation.packing import FP8_BLOCK, Packing, compute_bytes
from paramcount.counting.tensors import Tensor
from paramcount.errors import ParamcountError, join_words

WIDTHS = (2, 4, 1, 8)  # bytes per value, the most common first
WIDE = Fraction(4)
BIT = Fraction(1, 8)  # older versions of transformers counted a bool as one bit
SCALES = ("F32", "BF16", "F8_E8M0")  # possible types of FP8 scales
SCALAR = "masked_bias"  # GPT-Neo and GPT-NeoX: one value per mask
MOST_OTHER_TYPES = 10  # kinds of tensors that may have another type; all their subsets are tried


class OtherType(NamedTuple):
    """Tensors of one kind that may have another type than the rest."""

    values: int
    width: Fraction  # bytes per value


def explain_total_size(matches: Matches, content: Unpacked, checkpoint: Checkpoint) -> str:
    """How total_size is the sum of the tensors' bytes, or why it was not checked; empty if the index has no total_size.

    Raises: ParamcountError if no types of the values give total_size.
    """
    total = checkpoint.total_size
    if total is None:
        return ""
    file_tensors, scheme = content.tensors, read_quantization(checkpoint)
    packed = {name: tensor for name, tensor in matches.matching.items() if len(file_tensors[name].file_names) > 1}
    plain = count_copies(tensor for name, tensor in matches.matching.items() if name not in packed)
    more = {name: count_values(name, packed) for name in matches.unexpected}
    values = sum(n * prod(tensor.shape) for tensor, n in plain) + sum(filter(None, more.values()))
    unknown = sum(n is None for n in more.values())
    packed_counts = Counter(
        (tensor.shape, tuple([part.rpartition(".")[2] for part in file_tensors[name].file_names]))
        for name, tensor in packed.items()
    )
    sizes = list(dict.fromkeys(enumerate_packed_sizes(packed_counts, scheme)))
    if unknown or None in sizes:
        if total < values + min((size for size in sizes if size), default=0):
            raise ParamcountError(
                f"total_size {total:,} is too small for {values:,} values", expected="at least 1 byte per value"
            )
        formats = sorted({file_tensors[name].format or "weights" for name in packed})
        reason = (
            f"the shapes of {unknown:,} tensors are unknown"
            if unknown
            else f"the packing of {', '.join(formats)} is unknown"
        )
        return f"total_size {total:,} was not checked: {reason}"
    for size in sizes:
        for width, other_types in enumerate_widths(plain):
            if (size or 0) + values * width + sum(n * (other - width) for n, other in other_types) == total:
                return f"total_size {total:,} is {describe_sum(size or 0, values, width, other_types)}"
    raise ParamcountError(
        f"total_size {total:,} does not match {values:,} values{' plus packed weights' if packed else ''}",
        expected="1, 2, 4 or 8 bytes per value",
    )


def count_copies(tensors: Iterable[Tensor]) -> list[tuple[Tensor, int]]:
    """Each declared tensor with its number of copies."""
    copies: dict[int, list[Tensor]] = {}
    for tensor in tensors:
        copies.setdefault(id(tensor), []).append(tensor)
    return [(alike[0], len(alike)) for alike in copies.values()]


def count_values(name: str, packed: Mapping[str, Tensor]) -> int | None:
    """Values of a tensor that the model does not have; None if its name does not say."""
    weight = packed.get(f"{name.removesuffix('.bias')}.weight") if name.endswith(".bias") else None
    return 1 if name.endswith(SCALAR) else weight.shape[-2] if weight and len(weight.shape) > 1 else None


def enumerate_widths(plain: Sequence[tuple[Tensor, int]]) -> Iterator[tuple[int, tuple[OtherType, ...]]]:
    """Bytes per value and the tensors of another type, the simplest combination first."""
    values_of_kind: Counter[str] = Counter()
    mixers = tuple(
        {
            strip_indices(tensor.name).rpartition(".")[0] + "."
            for tensor, _ in plain
            if tensor.component.startswith("mixer")
        }
    )
    for tensor, n in plain:
        values_of_kind[classify_value_type(tensor, mixers)] += n * prod(tensor.shape)
    masks, others = (
        values_of_kind.pop("masks", 0),
        sorted({n for kind, n in values_of_kind.items() if kind})[-MOST_OTHER_TYPES:],
    )
    for n in range(len(others) + 1):
        for chosen in combinations(others, n):
            other_types = tuple(OtherType(count, WIDE) for count in chosen)
            for width in WIDTHS if not n else WIDTHS[:1]:
                yield width, other_types
                if masks:
                    yield from ((width, (*other_types, OtherType(masks, other))) for other in (BIT, Fraction(1)))


def classify_value_type(tensor: Tensor, mixers: tuple[str, ...]) -> str:
    """The kind of tensors that share a type with this one; empty for matrices. `mixers`: modules of state-space layers, whose vectors may
    have different types.
    """
    if tensor.role != "parameter":
        return "masks" if tensor.role == "legacy_buffer" and len(tensor.shape) == 4 else "buffers"
    if len(tensor.shape) == 1 and strip_indices(tensor.name).startswith(mixers):
        return strip_indices(tensor.name)
    component = tensor.component.partition(".")[0]
    return component if component in ("norm", "router") else ""


def describe_sum(packed: int, values: int, width: int, other_types: Iterable[OtherType]) -> str:
    """The sum of bytes as text."""
    rest = values - sum(n for n, _ in other_types)
    parts = [f"packed weights of {packed:,} bytes"] * bool(packed) + [f"{rest:,} values of {width} bytes"]
    parts += [f"{n:,} of {'1 bit' if other == BIT else f'{other} bytes'}" for n, other in other_types]
    return join_words(parts, "and")


# ---- packed tensors, from their names


def enumerate_packed_sizes(
    packed_counts: Mapping[tuple[tuple[int, ...], tuple[str, ...]], int], scheme: QuantizationScheme
) -> Iterator[int | None]:
    """Possible bytes of packed tensors including scales; None if the packing is unknown. `packed_counts`: number of tensors per shape and
    last words of their names.
    """
    for scale in SCALES:
        for transposed in (False, True):
            sizes = [
                (compute_packed_size(shape, names, scheme, scale, transposed), n)
                for (shape, names), n in packed_counts.items()
            ]
            yield None if any(size is None for size, _ in sizes) else sum((size or 0) * n for size, n in sizes)


def compute_packed_size(
    shape: tuple[int, ...], names: tuple[str, ...], scheme: QuantizationScheme, scale: str, transposed: bool
) -> int | None:
    """Bytes of a packed tensor. `transposed`: the model stores its matrices transposed, as GPT-2 does."""
    packing = infer_packing(names, scheme, scale)
    if packing is None or len(shape) < 2:
        return None
    *before, outputs, inputs = shape
    other_way = names[0].endswith("_blocks") or (transposed and packing.layout in ("gptq", "awq"))
    return compute_bytes((*before, inputs, outputs) if other_way else shape, packing)


def infer_packing(names: tuple[str, ...], scheme: QuantizationScheme, scale: str) -> Packing | None:
    """The packing of a tensor stored under these names; None if neither they nor the config say.

    >>> infer_packing(("weight", "weight_scale_inv"), QuantizationScheme(), "F32").block
    (128, 128)
    """
    if names[0] == "qweight":
        layout = scheme.layout or ("gptq" if "g_idx" in names else None)
        if layout not in ("gptq", "awq") or scheme.bits is None or scheme.group is None or scheme.various:
            return None
        return Packing(
            layout, "I32", scheme.bits, (1, scheme.group), "F16", zeros="qzeros" in names, indexed="g_idx" in names
        )
    if names[0].endswith("blocks"):
        return Packing("mxfp4", "U8", scale="U8")
    if len(names) == 2 and names[1].endswith("_scale_inv"):
        return Packing("fp8", "F8_E4M3", 8, scheme.block or FP8_BLOCK, scale)
    return None

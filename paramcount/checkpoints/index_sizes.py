"""Whether the total_size of an index without shards can be the bytes of the tensors that it lists.

An index has neither shapes nor types. Shapes are taken from the model. All values have one type, except small tensors
that some writers store in another: buffers, causal masks, norms, routers, and the vectors of state-space layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.matching import Matches
from paramcount.checkpoints.packed.quantised import Unpacked, read_quantization
from paramcount.errors import ParamcountError
from paramcount.flow import TensorRow
from paramcount.formats.quantization_config import Stated
from paramcount.formats.weights import load_formats

Shape: TypeAlias = tuple[int, ...]
PackedKind: TypeAlias = tuple[Shape, tuple[str, ...]]  # shape, and last words of the names in the file

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
    file_tensors = content.tensors
    packed = {name: tensor for name, tensor in matches.matching.items() if len(file_tensors[name].file_names) > 1}
    plain = count_copies(tensor for name, tensor in matches.matching.items() if name not in packed)
    unexpected = [count_values(name, packed) for name in matches.unexpected]
    unknown = unexpected.count(None)
    values = sum(n * prod(tensor.shape) for tensor, n in plain) + sum(filter(None, unexpected))
    packed_kinds: Counter[PackedKind] = Counter()
    for name, tensor in packed.items():
        last_words = tuple([file_name.rpartition(".")[2] for file_name in file_tensors[name].file_names])
        packed_kinds[tensor.shape, last_words] += 1
    sizes = list(dict.fromkeys(enumerate_packed_sizes(packed_kinds, read_quantization(checkpoint))))
    if unknown or None in sizes:
        if total < values + min((size for size in sizes if size), default=0):
            found = f"total_size {total:,} is too small for {values:,} values"
            raise ParamcountError(found, expected="at least 1 byte per value")
        if unknown:
            reason = f"the shapes of {unknown:,} tensors are unknown"
        else:
            formats = sorted({file_tensors[name].format or "weights" for name in packed})
            reason = f"the packing of {', '.join(formats)} is unknown"
        return f"total_size {total:,} was not checked: {reason}"
    for size in sizes:
        for width, other_types in enumerate_widths(plain):
            if (size or 0) + values * width + sum(n * (other - width) for n, other in other_types) == total:
                return f"total_size {total:,} = {describe_sum(size or 0, values, width, other_types)}"
    found = f"total_size {total:,} does not match {values:,} values{' plus packed weights' if packed else ''}"
    raise ParamcountError(found, expected="1, 2, 4 or 8 bytes per value")


def count_copies(tensors: Iterable[TensorRow]) -> list[tuple[TensorRow, int]]:
    """Each declared tensor with its number of copies."""
    copies: dict[int, list[TensorRow]] = {}
    for tensor in tensors:
        copies.setdefault(id(tensor), []).append(tensor)
    return [(alike[0], len(alike)) for alike in copies.values()]


def count_values(name: str, packed: Mapping[str, TensorRow]) -> int | None:
    """Values of a tensor that the model does not have; None if its name does not say."""
    if name.endswith(SCALAR):
        return 1
    weight = packed.get(f"{name.removesuffix('.bias')}.weight") if name.endswith(".bias") else None
    return weight.shape[-2] if weight and len(weight.shape) > 1 else None


def enumerate_widths(plain: Sequence[tuple[TensorRow, int]]) -> Iterator[tuple[int, tuple[OtherType, ...]]]:
    """Bytes per value and the tensors of another type, the simplest combination first."""
    names = (strip_indices(tensor.name) for tensor, _ in plain if tensor.component.startswith("mixer"))
    mixers = tuple({name.rpartition(".")[0] + "." for name in names})
    values_of_kind: Counter[str] = Counter()
    for tensor, n in plain:
        values_of_kind[classify_value_type(tensor, mixers)] += n * prod(tensor.shape)
    masks = values_of_kind.pop("masks", 0)
    others = sorted({n for kind, n in values_of_kind.items() if kind})[-MOST_OTHER_TYPES:]
    for n in range(len(others) + 1):
        for combination in combinations(others, n):
            other_types = tuple(OtherType(count, WIDE) for count in combination)
            for width in WIDTHS if not n else WIDTHS[:1]:
                yield width, other_types
                if masks:
                    yield width, (*other_types, OtherType(masks, BIT))
                    yield width, (*other_types, OtherType(masks, Fraction(1)))


def classify_value_type(tensor: TensorRow, mixers: tuple[str, ...]) -> str:
    """The kind of tensors that share a type with this one; empty for matrices.

    `mixers`: modules of state-space layers, whose vectors may have different types.
    """
    if tensor.role != "parameter":
        return "masks" if tensor.role == "legacy_buffer" and len(tensor.shape) == 4 else "buffers"
    if len(tensor.shape) == 1 and strip_indices(tensor.name).startswith(mixers):
        return strip_indices(tensor.name)
    component = tensor.component.partition(".")[0]
    return component if component in ("norm", "router") else ""


def describe_sum(packed: int, values: int, width: int, other_types: Iterable[OtherType]) -> str:
    """The sum of bytes as text.

    >>> describe_sum(0, 1_000, 2, [OtherType(10, Fraction(4)), OtherType(16, BIT)])
    '974 values × 2 bytes + 10 × 4 bytes + 16 × 1 bit'
    """
    rest = values - sum(n for n, _ in other_types)
    terms = [f"packed weights of {packed:,} bytes"] if packed else []
    terms.append(f"{rest:,} values × {format_width(width)}")
    terms += [f"{n:,} × {format_width(other)}" for n, other in other_types]
    return " + ".join(terms)


def format_width(width: int | Fraction) -> str:
    if width == BIT:
        return "1 bit"
    return f"{width} byte{'' if width == 1 else 's'}"


# ---- packed tensors, from their names


def enumerate_packed_sizes(packed_kinds: Mapping[PackedKind, int], stated: Stated) -> Iterator[int | None]:
    """Possible bytes of packed tensors including scales; None if the packing is unknown.

    `packed_kinds`: {kind: number of tensors}.
    """
    for scale in SCALES:
        for is_transposed in (False, True):
            sizes = []
            for (shape, names), n in packed_kinds.items():
                size = compute_packed_size(shape, names, stated, scale, is_transposed=is_transposed)
                sizes.append(None if size is None else size * n)
            yield None if None in sizes else sum(size or 0 for size in sizes)


def compute_packed_size(
    shape: Shape, names: tuple[str, ...], stated: Stated, scale: str, *, is_transposed: bool
) -> int | None:
    """Bytes of a packed tensor. `is_transposed`: whether the model stores its matrices transposed, as GPT-2 does."""
    if len(shape) < 2:
        return None
    for format in load_formats():
        if packing := format.guess(names, stated, scale):
            turns = next((each.transposed for each in format.patterns if names[0].endswith(each.values)), False)
            *before, outputs, inputs = shape
            is_turned = turns or (turns is None and is_transposed)
            return format.count_bytes((*before, inputs, outputs) if is_turned else shape, packing)
    return None

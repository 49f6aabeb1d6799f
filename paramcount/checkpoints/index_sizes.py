"""What an index promises where no shard is there to be read: whether its total_size can be the bytes of the tensors that it names.

An index tells neither shapes nor types. The shapes are those declared; all values are of one type, or some of the small tensors that writers
keep in another: buffers, causal masks, norms, routers, and the vectors of state-space layers.
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
from paramcount.errors import ParamcountError

WIDTHS = (2, 4, 1, 8)  # bytes of a value, the usual one first
WIDE = Fraction(4)
BIT = Fraction(1, 8)  # older transformers counted a truth value so
SCALES = ("F32", "BF16", "F8_E8M0")  # types of the scales of FP8
SCALAR = "masked_bias"  # of GPT-Neo and GPT-NeoX: one value beside each mask
MOST_APART = 10  # kinds of tensors that may be of another type; all their subsets are tried


class Apart(NamedTuple):
    """Tensors alike that may be of another type than the rest."""

    values: int
    width: Fraction  # bytes of each, where they are


def explain_total_size(matches: Matches, content: Unpacked, checkpoint: Checkpoint) -> str:
    """How an index's total_size is the bytes of its tensors, or why nobody can tell; nothing where it says none.

    Raises: ParamcountError where no types of the values give it.
    """
    total = checkpoint.total_size
    if total is None:
        return ""
    held, said = content.tensors, read_quantization(checkpoint)
    packed = {name: tensor for name, tensor in matches.there.items() if len(held[name].file_names) > 1}
    plain = count_copies(tensor for name, tensor in matches.there.items() if name not in packed)
    more = {name: count_values(name, packed) for name in matches.unexpected}
    values = sum(n * prod(tensor.shape) for tensor, n in plain) + sum(filter(None, more.values()))
    unknown = sum(n is None for n in more.values())
    kept = Counter((tensor.shape, tuple([part.rpartition(".")[2] for part in held[name].file_names])) for name, tensor in packed.items())
    sizes = list(dict.fromkeys(packed_sizes(kept, said)))
    if unknown or None in sizes:
        if total < values + min((size for size in sizes if size), default=0):
            raise ParamcountError(f"total_size {total:,} is too small for {values:,} values", expected="at least 1 byte per value")
        formats = sorted({held[name].format or "weights" for name in packed})
        reason = f"the shapes of {unknown:,} tensors are unknown" if unknown else f"the packing of {', '.join(formats)} is unknown"
        return f"total_size {total:,} was not checked: {reason}"
    for size in sizes:
        for width, apart in enumerate_widths(plain):
            if (size or 0) + values * width + sum(n * (other - width) for n, other in apart) == total:
                return f"total_size {total:,} is {describe(size or 0, values, width, apart)}"
    raise ParamcountError(
        f"total_size {total:,} does not match {values:,} values{' plus packed weights' if packed else ''}", expected="1, 2, 4 or 8 bytes per value"
    )


def count_copies(tensors: Iterable[Tensor]) -> list[tuple[Tensor, int]]:
    """Declared tensors, each once, and how many copies of it there are."""
    copies: dict[int, list[Tensor]] = {}
    for tensor in tensors:
        copies.setdefault(id(tensor), []).append(tensor)
    return [(alike[0], len(alike)) for alike in copies.values()]


def count_values(name: str, packed: Mapping[str, Tensor]) -> int | None:
    """How many values a tensor holds that nobody declared; None where its name does not tell."""
    weight = packed.get(f"{name.removesuffix('.bias')}.weight") if name.endswith(".bias") else None
    return 1 if name.endswith(SCALAR) else weight.shape[-2] if weight and len(weight.shape) > 1 else None


def enumerate_widths(plain: Sequence[tuple[Tensor, int]]) -> Iterator[tuple[int, tuple[Apart, ...]]]:
    """The bytes of a value, and which of them are of another type: the simplest way first."""
    counted: Counter[str] = Counter()
    mixers = tuple({strip_indices(tensor.name).rpartition(".")[0] + "." for tensor, _ in plain if tensor.component.startswith("mixer")})
    for tensor, n in plain:
        counted[format_of_name(tensor, mixers)] += n * prod(tensor.shape)
    masks, others = counted.pop("masks", 0), sorted({n for kind, n in counted.items() if kind})[-MOST_APART:]
    for n in range(len(others) + 1):
        for chosen in combinations(others, n):
            apart = tuple(Apart(count, WIDE) for count in chosen)
            for width in WIDTHS if not n else WIDTHS[:1]:
                yield width, apart
                if masks:
                    yield from ((width, (*apart, Apart(masks, other))) for other in (BIT, Fraction(1)))


def format_of_name(tensor: Tensor, mixers: tuple[str, ...]) -> str:
    """Which tensors have its type, where that may be another than the matrices'; nothing of those. `mixers`: modules of state-space layers,
    whose vectors may differ from each other.
    """
    if tensor.role != "parameter":
        return "masks" if tensor.role == "legacy_buffer" and len(tensor.shape) == 4 else "buffers"
    if len(tensor.shape) == 1 and strip_indices(tensor.name).startswith(mixers):
        return strip_indices(tensor.name)
    component = tensor.component.partition(".")[0]
    return component if component in ("norm", "router") else ""


def describe(packed: int, values: int, width: int, apart: Iterable[Apart]) -> str:
    """The sum, for people."""
    rest = values - sum(n for n, _ in apart)
    parts = [f"packed weights of {packed:,} bytes"] * bool(packed) + [f"{rest:,} values of {width} bytes"]
    parts += [f"{n:,} of {'1 bit' if other == BIT else f'{other} bytes'}" for n, other in apart]
    return " and ".join((", ".join(parts[:-1]), parts[-1])) if parts[1:] else parts[0]


# ---- packed tensors, by their names alone


def packed_sizes(kept: Mapping[tuple[tuple[int, ...], tuple[str, ...]], int], said: QuantizationScheme) -> Iterator[int | None]:
    """The bytes that packed tensors may take with all that stands beside them; None where nothing tells how they are packed. `kept`: how many
    there are of each shape, and the last words of their names.
    """
    for scale in SCALES:
        for turned in (False, True):
            sizes = [(size_as(shape, names, said, scale, turned), n) for (shape, names), n in kept.items()]
            yield None if any(size is None for size, _ in sizes) else sum((size or 0) * n for size, n in sizes)


def size_as(shape: tuple[int, ...], names: tuple[str, ...], said: QuantizationScheme, scale: str, turned: bool) -> int | None:
    """The bytes of one. `turned`: words run along a matrix that the model has the other way round, as GPT-2 does."""
    packing = packing_of(names, said, scale)
    if packing is None or len(shape) < 2:
        return None
    *before, outputs, inputs = shape
    other_way = names[0].endswith("_blocks") or (turned and packing.layout in ("gptq", "awq"))
    return compute_bytes((*before, inputs, outputs) if other_way else shape, packing)


def packing_of(names: tuple[str, ...], said: QuantizationScheme, scale: str) -> Packing | None:
    """How the tensor with these names in the file is packed; None where neither they nor the configuration tell.

    >>> packing_of(("weight", "weight_scale_inv"), QuantizationScheme(), "F32").block
    (128, 128)
    """
    if names[0] == "qweight":
        layout = said.layout or ("gptq" if "g_idx" in names else None)
        if layout not in ("gptq", "awq") or said.bits is None or said.group is None or said.various:
            return None
        return Packing(layout, "I32", said.bits, (1, said.group), "F16", zeros="qzeros" in names, indexed="g_idx" in names)
    if names[0].endswith("blocks"):
        return Packing("mxfp4", "U8", scale="U8")
    if len(names) == 2 and names[1].endswith("_scale_inv"):
        return Packing("fp8", "F8_E4M3", 8, said.block or FP8_BLOCK, scale)
    return None

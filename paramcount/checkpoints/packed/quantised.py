"""What stands behind the packing of a quantised checkpoint: its tensors as an unquantised file would name and shape them.

A group of tensors is taken for a packed one where all of the pattern is there, values of a packed type and what belongs to them, never
by a single name: an ordinary model may call a tensor `scales`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import prod
from typing import NamedTuple

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.folding import fold_names
from paramcount.checkpoints.packed import groups
from paramcount.checkpoints.packed.configs import read_quantization
from paramcount.checkpoints.packed.foreign import refuse_foreign
from paramcount.checkpoints.packed.groups import Group, group_packed
from paramcount.checkpoints.packed.shapes import (
    Fit,
    blocks_fit,
    float_block,
    float_fit,
    four_bit_fit,
    misfits,
    words_fit,
    words_read,
)
from paramcount.counting.quantisation.configs import QuantizationScheme
from paramcount.counting.quantisation.packing import FP8_BLOCK, WORDS, Packing, Piece, compute_bytes
from paramcount.errors import ParamcountError, make_printable
from paramcount.formats.gguf import BLOCKS

MOST_FAULTS = 100  # lines
MOST_SHAPES = 10_000  # of packed tensors; no model has a hundredth


class LogicalTensor(NamedTuple):
    """A tensor as an unquantised file would store it."""

    shape: tuple[int, ...] | None  # None where only the name is known, or where what is there fits nothing
    format: str | None  # for people: BF16, Q4_K, GPTQ 4-bit
    file_names: tuple[str, ...]  # of packed tensors: values first, then scales, zero points, group index
    packing: Packing | None = None  # None where not all shapes are known
    turned: bool | None = (
        False  # None: `shape` is [outputs, inputs], and which way round the model's own tensor is, packing does not tell
    )

    def has_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether a declared shape is this one; the other way round, too, where nothing tells.

        >>> LogicalTensor((2304, 768), "GPTQ 4-bit", (), turned=None).has_shape((768, 2304)), LogicalTensor((2304, 768), "F32", ()).has_shape((768, 2304))
        (True, False)
        """
        return shape == self.shape or (
            self.turned is None and self.shape is not None and shape == _transposed(self.shape)
        )

    def names_in_file(self, name: str) -> tuple[str, ...]:
        """The tensors of the file that stand for this one, values first. `name`: its own name."""
        return self.file_names or (name,)

    def size(self, shape: tuple[int, ...]) -> int | None:
        """The bytes that a tensor of a declared shape takes, packed like this one, scales and all; None where the packing is not known."""
        if self.packing is None:
            return None
        if len(shape) < 2 and self.packing.scale:  # no matrix: vectors are not packed
            return compute_bytes(shape, Packing("plain", self.packing.scale))
        return compute_bytes(_transposed(shape) if self._stands_turned(shape) else shape, self.packing)

    def _stands_turned(self, shape: tuple[int, ...]) -> bool:
        return self.turned is True or (self.turned is None and shape != self.shape and self.has_shape(shape))


def _transposed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], *shape[:-3:-1])


class Totals(NamedTuple):
    """All tensors together; None where not all are known."""

    values: int | None  # as an unquantised file would hold: parameters, buffers
    elements: int | None  # as stored, scales and packed words among them
    bytes: int | None
    bits: Fraction | None  # for each of the values

    def to_dict(self) -> dict[str, int | float | None]:
        """The same as plain data for JSON."""
        return self._asdict() | {"bits": as_decimal(self.bits)}


def as_decimal(bits: Fraction | None) -> float | None:
    """Bits per value in four decimals.

    >>> as_decimal(Fraction(33, 8)), as_decimal(None)
    (4.125, None)
    """
    return None if bits is None else round(float(bits), 4)


@dataclass(frozen=True)
class Unpacked:
    """A checkpoint without its packing."""

    scheme: str | None  # "GPTQ, 4 bits, groups of 128"; None where nothing is quantised
    tensors: Mapping[str, LogicalTensor]  # by the name that an unquantised file would use, in the file's order
    beside: Mapping[
        str, str
    ]  # what belongs to their values, by name: scale | zero point | group index | activation scale
    faults: tuple[str, ...]  # a line each
    totals: Totals


def unpack(checkpoint: Checkpoint) -> Unpacked:
    """The tensors of a checkpoint as an unquantised file would store them.

    Raises: ParamcountError where it is quantised by a scheme that is not read, which it names; and where no model is behind it.
    """
    try:
        return _unpack(checkpoint)
    except ParamcountError as error:
        raise error.add_location(make_printable(checkpoint.path)) from None


def _unpack(checkpoint: Checkpoint) -> Unpacked:
    config = read_quantization(checkpoint)
    if checkpoint.format == "gguf":
        stored = {name: unpacked_tensor(held.dtype, held.shape, "ggml") for name, held in checkpoint.tensors.items()}
        return Unpacked(_gguf_scheme(stored), stored, {}, (), sum_totals(stored, checkpoint))
    refuse_foreign(checkpoint.tensors)
    found = group_packed(checkpoint.tensors, config)
    packed = {group.names[0]: (group, fit) for group, fit in zip(found.groups, fit_groups(found.groups, config))}
    faults = [*found.faults, *find_contradictions(list(packed.values()), config)]
    tensors: dict[str, LogicalTensor] = {}
    for name, held in checkpoint.tensors.items():
        if name in packed:
            group, fit = packed[name]
            faults += [(group.names[i], text) for i, text in fit.faults]
            free = group.name == name or not (group.name in checkpoint.tensors or group.name in tensors)
            if not free:
                faults.append((name, f"conflicts with {make_printable(group.name)}, which has the same name"))
            tensors[group.name if free else name] = packed_tensor(group, fit)
        elif name not in found.beside:
            tensors[name] = unpacked_tensor(held.dtype, held.shape)
    scheme = describe_scheme([(group, fit) for group, fit in packed.values()], config)
    lines = _lines(faults)
    if (
        config.method
        and checkpoint.tensors
        and not any(group.family.startswith(config.method) for group in found.groups)
    ):
        lines = (f"the config says {config.name}, but no tensor is packed that way", *lines)
    return Unpacked(scheme, tensors, found.beside, lines, sum_totals(tensors, checkpoint))


@lru_cache(4096)
def unpacked_tensor(dtype: str | None, shape: tuple[int, ...] | None, layout: str = "plain") -> LogicalTensor:
    """A tensor that is not packed: one object for all of a shape, because there may be hundreds of thousands."""
    return LogicalTensor(shape, dtype, (), None if dtype is None or shape is None else Packing(layout, dtype))


def packed_tensor(group: Group, fit: Fit) -> LogicalTensor:
    """A packed tensor, as the model has it."""
    shape = _transposed(fit.shape) if group.turned and fit.shape else fit.shape
    turned = None if group.family == "words" else group.turned
    return LogicalTensor(shape, fit.packing.format if fit.packing else group.format, group.names, fit.packing, turned)


def fit_groups(groups: Iterable[Group], config: QuantizationScheme) -> list[Fit]:
    """Each group as it is understood; those that make no sense alone, as the others of the file are packed.

    Raises: ParamcountError where they are of more shapes than any model's.
    """
    groups = list(groups)
    if len({group.pieces for group in groups}) > MOST_SHAPES:
        raise ParamcountError(
            f"packed tensors have more than {MOST_SHAPES:,} shapes", expected=f"at most {MOST_SHAPES:,}"
        )
    read = {
        found: words_read(found, config)
        for found in {group.pieces for group in groups if group.family == "words" and group.pieces}
    }
    votes = Counter(_without_scales(fit.packing) for group in groups if (fit := read.get(group.pieces)) and fit.packing)
    usual = max(votes, key=lambda packing: votes[packing]) if votes else None
    shared = _float_blocks(groups, config)
    known: dict[tuple[str, str, tuple[Piece, ...]], Fit] = {}
    found = []
    for group in groups:
        key = (group.family, group.ending, group.pieces)
        if key not in known:
            known[key] = _fit(group, config, usual, shared)
        found.append(known[key])
    return found


def _without_scales(packing: Packing) -> Packing:
    return packing._replace(others=())


def _float_blocks(groups: Iterable[Group], config: QuantizationScheme) -> dict[str, tuple[int, int]]:
    """The blocks of FP8, for each way of naming the scales."""
    pairs: dict[str, Counter[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for group in groups:
        if group.family == "fp8" and group.pieces and len(group.pieces[0].shape) > 1:
            pairs.setdefault(group.ending, Counter())[group.pieces[0].shape, group.pieces[1].shape] += 1
    return {ending: float_block(found, config.block) or config.block or FP8_BLOCK for ending, found in pairs.items()}


def _fit(group: Group, config: QuantizationScheme, usual: Packing | None, shared: Mapping[str, tuple[int, int]]) -> Fit:
    if not group.pieces:
        return Fit(group.shape, None)
    match group.family:
        case "words":
            return words_fit(group.pieces, config, usual)
        case "mxfp4":
            return blocks_fit(group.pieces)
        case groups.FOUR_BITS:
            return four_bit_fit(group.pieces)
        case _:
            return float_fit(group.pieces, shared.get(group.ending, FP8_BLOCK), loose=not group.ending.endswith("inv"))


def find_contradictions(packed: Sequence[tuple[Group, Fit]], config: QuantizationScheme) -> list[tuple[str, str]]:
    """Where the packing is another than the configuration says."""
    found = []
    known: dict[tuple[tuple[Piece, ...], Packing], str] = {}
    for group, fit in packed:
        if fit.packing and fit.shape and not fit.faults:
            key = (group.pieces, fit.packing)
            if key not in known:
                known[key] = describe_contradiction(group, fit.shape, fit.packing, config)
            if known[key]:
                found.append((group.names[0], known[key]))
    return found + find_missing_indices(packed)


def find_missing_indices(packed: Sequence[tuple[Group, Fit]]) -> list[tuple[str, str]]:
    """GPTQ's tensors that lack the group index that most of the file's have."""
    words = [
        (group.names[0], fit.packing.indexed) for group, fit in packed if fit.packing and fit.packing.layout in WORDS
    ]
    lacking = [name for name, indexed in words if not indexed]
    return [(name, "group index is missing") for name in lacking] if 2 * len(lacking) < len(words) else []


def describe_contradiction(group: Group, shape: tuple[int, ...], packing: Packing, config: QuantizationScheme) -> str:
    """What of a packing the configuration says otherwise; "" where nothing."""
    if config.method == "words" and packing.layout in WORDS:
        if config.layout and WORDS[config.layout] != WORDS[packing.layout]:
            return f"is packed with {WORDS[packing.layout]}, but the config says {config.name}"
        if config.various:
            return ""
        if config.bits and config.bits != packing.bits:
            return f"has {packing.bits} bits per value, but the config says {config.bits}"
        if config.group is not None and misfits(group.pieces, shape, packing._replace(block=(1, config.group))):
            return f"has groups of {packing.block[1] or shape[-1]}, but the config says {config.group or 'one group'}"
    if config.method != "fp8" or not config.block or packing.layout != "fp8" or not group.ending.endswith("inv"):
        return ""
    if misfits(group.pieces, shape, packing._replace(block=config.block)):
        return f"has one scale per {_block(packing.block)}, but the config says {_block(config.block)}"
    return ""


def _block(block: tuple[int, int]) -> str:
    """A block as people read it.

    >>> _block((128, 128)), _block((1, 0)), _block((0, 0))
    ('128 × 128', 'output', 'tensor')
    """
    return {(1, 0): "output", (0, 0): "tensor"}.get(block) or " × ".join(str(n) if n else "all" for n in block)


def describe_scheme(packed: Iterable[tuple[Group, Fit]], config: QuantizationScheme) -> str | None:
    """How a file is quantised, for people."""
    packings = Counter(_without_scales(fit.packing) for _, fit in packed if fit.packing)
    named = dict.fromkeys(group.format for group, fit in packed if not fit.packing and group.format)
    parts: list[str] = []
    of_words = [packing for packing in packings if packing.layout in WORDS]
    for method in dict.fromkeys(WORDS[packing.layout] for packing in of_words):
        mine = [packing for packing in of_words if WORDS[packing.layout] == method]
        bits, groups = sorted({packing.bits for packing in mine}), sorted({packing.block[1] for packing in mine} - {0})
        parts.append(
            f"{method}, {_join_numbers(bits)} bits, {f'groups of {_join_numbers(groups)}' if groups else 'one group'}"
        )
    blocks = dict.fromkeys(packing.block for packing, _ in packings.most_common() if packing.layout == "fp8")
    if blocks:
        parts.append(
            " and ".join(
                f"one scale per {_block(block)}" if block in ((1, 0), (0, 0)) else f"in blocks of {_block(block)}"
                for block in blocks
            )
        )
        parts[-1] = f"FP8{', ' if parts[-1].startswith('one ') else ' '}{parts[-1]}"
    parts += [
        name
        for layout, name in (("fp4", "FP4 in groups of 32"), ("mxfp4", "MXFP4"))
        if any(packing.layout == layout for packing in packings)
    ]
    if not parts and named:
        parts = [", ".join(named)]
        if config.method == "words" and config.bits:
            parts[0] += f", {config.bits} bits" + (f", groups of {config.group}" if config.group else "")
    return " and ".join(parts) or None


def _join_numbers(numbers: Iterable[int]) -> str:
    return " and ".join(map(str, numbers))


def _gguf_scheme(tensors: Mapping[str, LogicalTensor]) -> str | None:
    """The quantised type that most values have, where one has any."""
    values: Counter[str] = Counter()
    for tensor in tensors.values():
        if tensor.format and tensor.shape:
            values[tensor.format] += prod(tensor.shape)
    if not any(BLOCKS[dtype].values > 1 for dtype in values if dtype in BLOCKS):
        return None
    return f"GGUF, mostly {values.most_common(1)[0][0]}"


def sum_totals(tensors: Mapping[str, LogicalTensor], checkpoint: Checkpoint) -> Totals:
    """What all tensors come to."""
    values = (
        None
        if any(tensor.shape is None for tensor in tensors.values())
        else sum(prod(tensor.shape or ()) for tensor in tensors.values())
    )
    whole = checkpoint.has_all_shapes
    elements = sum(prod(held.shape or ()) for held in checkpoint.tensors.values()) if whole else None
    size = sum(held.size or 0 for held in checkpoint.tensors.values()) if whole else checkpoint.total_size
    return Totals(values, elements, size, Fraction(8 * size, values) if size is not None and values else None)


def _lines(faults: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Faults of single tensors, folded: those that say the same, by the pattern of their names."""
    texts: dict[str, list[str]] = {}
    for name, text in faults:
        texts.setdefault(text, []).append(name)
    every = (
        (f"{make_printable(pattern)}: {text}", len(alike))
        for text, names in texts.items()
        for pattern, alike in fold_names(names)
    )
    lines = list(islice(every, MOST_FAULTS))
    more = sum(map(len, texts.values())) - sum(n for _, n in lines)
    return (*(line for line, _ in lines), *([f"and {more:,} more tensors with problems"] if more else []))

"""The tensors of a quantised checkpoint as an unquantised file would name and shape them.

A group of tensors counts as packed only if the whole pattern is present, values of a packed type and the tensors that
belong to them. A single name is not enough: an ordinary model may call a tensor `scales`.
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
from paramcount.checkpoints.packed.groups import Group, group_packed
from paramcount.checkpoints.packed.shapes import (
    Block,
    Fit,
    Pieces,
    Shape,
    find_fp8_block,
    find_misfits,
    fit_fp4,
    fit_fp8,
    fit_mxfp4,
    fit_words,
    match_words,
)
from paramcount.checkpoints.packed.unsupported import reject_unsupported
from paramcount.counting.quantisation.configs import QuantizationScheme
from paramcount.counting.quantisation.packing import FP8_BLOCK, WORDS, Packing, compute_bytes
from paramcount.errors import ParamcountError, join_words, make_printable
from paramcount.formats.value_types import BLOCKS

MOST_FAULTS = 100  # lines
SCALE_UNITS = {(1, 0): "output", (0, 0): "tensor"}  # blocks with names
MOST_SHAPES = 10_000  # of packed tensors; no model has a hundredth of that


class LogicalTensor(NamedTuple):
    """A tensor as an unquantised file would store it."""

    shape: Shape | None  # None if only the name is known, or if the pieces fit no shape
    format: str | None  # for display: BF16, Q4_K, GPTQ 4-bit
    file_names: tuple[str, ...]  # of a packed tensor: values first, then scales, zero points, group index
    packing: Packing | None = None  # None if some shapes are unknown
    # Whether the model's tensor is [inputs, outputs]; None if `shape` is [outputs, inputs] and the packing cannot tell.
    transposed: bool | None = False

    def has_shape(self, shape: Shape) -> bool:
        """Whether this is the shape, or its transpose if the orientation is unknown.

        >>> LogicalTensor((2304, 768), "GPTQ 4-bit", (), transposed=None).has_shape((768, 2304))
        True
        >>> LogicalTensor((2304, 768), "F32", ()).has_shape((768, 2304))
        False
        """
        if shape == self.shape:
            return True
        return self.transposed is None and self.shape is not None and shape == _transpose(self.shape)

    def list_file_names(self, name: str) -> tuple[str, ...]:
        """The tensors of the file that represent this one, values first. `name`: its own name."""
        return self.file_names or (name,)

    def compute_size(self, shape: Shape) -> int | None:
        """Bytes of a tensor of this shape if packed like this one, scales included; None if the packing is unknown."""
        if self.packing is None:
            return None
        if len(shape) < 2 and self.packing.scale:  # vectors are not packed
            return compute_bytes(shape, Packing("plain", self.packing.scale))
        is_transposed = self.transposed or (self.transposed is None and shape != self.shape and self.has_shape(shape))
        return compute_bytes(_transpose(shape) if is_transposed else shape, self.packing)


def _transpose(shape: Shape) -> Shape:
    return (*shape[:-2], *shape[:-3:-1])


class Totals(NamedTuple):
    """Sums over all tensors; None if some sizes are unknown."""

    values: int | None  # in an unquantised file: parameters and buffers
    elements: int | None  # as stored, including scales and packed words
    bytes: int | None
    bits: Fraction | None  # per value

    def to_dict(self) -> dict[str, int | float | None]:
        """The sums as plain data for JSON."""
        return self._asdict() | {"bits": as_decimal(self.bits)}


def as_decimal(bits: Fraction | None) -> float | None:
    """Bits per value, rounded to four decimals.

    >>> as_decimal(Fraction(33, 8)), as_decimal(None)
    (4.125, None)
    """
    return None if bits is None else round(float(bits), 4)


@dataclass(frozen=True)
class Unpacked:
    """A checkpoint without its packing."""

    scheme: str | None  # "GPTQ, 4 bits, groups of 128"; None if nothing is quantised
    tensors: Mapping[str, LogicalTensor]  # by the name in an unquantised file, in the file's order
    auxiliary: Mapping[str, str]  # {tensor that belongs to values: scale | zero point | group index | activation scale}
    faults: tuple[str, ...]  # one line each
    totals: Totals


def unpack(checkpoint: Checkpoint) -> Unpacked:
    """The tensors of a checkpoint as an unquantised file would store them.

    Raises: ParamcountError if the quantisation scheme is not supported, or if packed tensors have too many shapes.
    """
    try:
        return _unpack_gguf(checkpoint) if checkpoint.format == "gguf" else _unpack_safetensors(checkpoint)
    except ParamcountError as error:
        raise error.add_location(make_printable(checkpoint.path)) from None


def _unpack_gguf(checkpoint: Checkpoint) -> Unpacked:
    tensors = {
        name: build_plain_tensor(tensor.dtype, tensor.shape, "ggml") for name, tensor in checkpoint.tensors.items()
    }
    return Unpacked(_describe_gguf_scheme(tensors), tensors, {}, (), sum_totals(tensors, checkpoint))


def _unpack_safetensors(checkpoint: Checkpoint) -> Unpacked:
    config = read_quantization(checkpoint)
    reject_unsupported(checkpoint.tensors)
    grouping = group_packed(checkpoint.tensors, config)
    fits = list(zip(grouping.groups, fit_groups(grouping.groups, config)))
    packed = {group.names[0]: (group, fit) for group, fit in fits}
    faults = [*grouping.faults, *find_contradictions(list(packed.values()), config)]
    tensors: dict[str, LogicalTensor] = {}
    for name, tensor in checkpoint.tensors.items():
        if name in packed:
            group, fit = packed[name]
            faults += [(group.names[i], problem) for i, problem in fit.faults]
            is_free = group.name == name or not (group.name in checkpoint.tensors or group.name in tensors)
            if not is_free:
                faults.append((name, f"conflicts with {make_printable(group.name)}, which has the same name"))
            tensors[group.name if is_free else name] = build_packed_tensor(group, fit)
        elif name not in grouping.auxiliary:
            tensors[name] = build_plain_tensor(tensor.dtype, tensor.shape)
    lines = _fold_faults(faults)
    method = config.method
    if method and checkpoint.tensors and not any(group.family.startswith(method) for group in grouping.groups):
        lines = (f"the config says {config.name}, but no tensor is packed that way", *lines)
    scheme = describe_scheme(list(packed.values()), config)
    return Unpacked(scheme, tensors, grouping.auxiliary, lines, sum_totals(tensors, checkpoint))


@lru_cache(4096)
def build_plain_tensor(dtype: str | None, shape: Shape | None, layout: str = "plain") -> LogicalTensor:
    """A tensor that is not packed; one object per type and shape, because there may be hundreds of thousands."""
    return LogicalTensor(shape, dtype, (), None if dtype is None or shape is None else Packing(layout, dtype))


def build_packed_tensor(group: Group, fit: Fit) -> LogicalTensor:
    """The tensor that a group represents, in the orientation of the model."""
    shape = _transpose(fit.shape) if group.transposed and fit.shape else fit.shape
    transposed = None if group.family == "words" else group.transposed
    format = fit.packing.format if fit.packing else group.format
    return LogicalTensor(shape, format, group.names, fit.packing, transposed)


def fit_groups(groups: Sequence[Group], config: QuantizationScheme) -> list[Fit]:
    """The fit of each group. A group whose pieces do not agree is fitted like the majority of the file.

    Raises: ParamcountError if there are more shapes than any model has.
    """
    if len({group.pieces for group in groups}) > MOST_SHAPES:
        found = f"packed tensors have more than {MOST_SHAPES:,} shapes"
        raise ParamcountError(found, expected=f"at most {MOST_SHAPES:,}")
    word_pieces = {group.pieces for group in groups if group.family == "words" and group.pieces}
    exact = {pieces: match_words(pieces, config) for pieces in word_pieces}
    votes: Counter[Packing] = Counter()
    for group in groups:
        if (match := exact.get(group.pieces)) and match.packing:
            votes[_drop_activation_scales(match.packing)] += 1
    majority = max(votes, key=lambda packing: votes[packing]) if votes else None
    blocks = _find_fp8_blocks(groups, config)
    fit_of_key: dict[tuple[str, str, Pieces], Fit] = {}
    fits = []
    for group in groups:
        key = (group.family, group.ending, group.pieces)
        if key not in fit_of_key:
            fit_of_key[key] = _fit_group(group, config, majority, blocks)
        fits.append(fit_of_key[key])
    return fits


def _drop_activation_scales(packing: Packing) -> Packing:
    return packing._replace(others=())


def _find_fp8_blocks(groups: Iterable[Group], config: QuantizationScheme) -> dict[str, Block]:
    """{ending of the names of scales: FP8 block}"""
    pairs: dict[str, Counter[tuple[Shape, Shape]]] = {}
    for group in groups:
        if group.family == "fp8" and group.pieces and len(group.pieces[0].shape) > 1:
            pairs.setdefault(group.ending, Counter())[group.pieces[0].shape, group.pieces[1].shape] += 1
    default = config.block or FP8_BLOCK
    return {ending: find_fp8_block(counts, config.block) or default for ending, counts in pairs.items()}


def _fit_group(group: Group, config: QuantizationScheme, majority: Packing | None, blocks: Mapping[str, Block]) -> Fit:
    if not group.pieces:
        return Fit(group.shape, None)
    match group.family:
        case "words":
            return fit_words(group.pieces, config, majority)
        case "mxfp4":
            return fit_mxfp4(group.pieces)
        case groups.FOUR_BITS:
            return fit_fp4(group.pieces)
        case _:
            block = blocks.get(group.ending, FP8_BLOCK)
            return fit_fp8(group.pieces, block, loose=not group.ending.endswith("inv"))


def find_contradictions(packed: Sequence[tuple[Group, Fit]], config: QuantizationScheme) -> list[tuple[str, str]]:
    """Tensors whose packing contradicts the config, or the rest of the file."""
    faults = []
    problems: dict[tuple[Pieces, Packing], str] = {}
    for group, fit in packed:
        if fit.packing and fit.shape and not fit.faults:
            key = (group.pieces, fit.packing)
            if key not in problems:
                problems[key] = describe_contradiction(group, fit.shape, fit.packing, config)
            if problems[key]:
                faults.append((group.names[0], problems[key]))
    return faults + find_missing_indices(packed)


def find_missing_indices(packed: Sequence[tuple[Group, Fit]]) -> list[tuple[str, str]]:
    """GPTQ tensors without a group index, if most of the file's have one."""
    in_words = [(group, fit.packing) for group, fit in packed if fit.packing and fit.packing.layout in WORDS]
    lacking = [group.names[0] for group, packing in in_words if not packing.indexed]
    return [(name, "group index is missing") for name in lacking] if 2 * len(lacking) < len(in_words) else []


def describe_contradiction(group: Group, shape: Shape, packing: Packing, config: QuantizationScheme) -> str:
    """How the packing contradicts the config; "" if it does not."""
    if config.method == "words" and packing.layout in WORDS:
        if config.layout and WORDS[config.layout] != WORDS[packing.layout]:
            return f"is packed with {WORDS[packing.layout]}, but the config says {config.name}"
        if config.various:
            return ""
        if config.bits and config.bits != packing.bits:
            return f"has {packing.bits} bits per value, but the config says {config.bits}"
        if config.group is not None and find_misfits(group.pieces, shape, packing._replace(block=(1, config.group))):
            return f"has groups of {packing.block[1] or shape[-1]}, but the config says {config.group or 'one group'}"
    if config.method != "fp8" or not config.block or packing.layout != "fp8" or not group.ending.endswith("inv"):
        return ""
    if find_misfits(group.pieces, shape, packing._replace(block=config.block)):
        unit, config_unit = _describe_scale_unit(packing.block), _describe_scale_unit(config.block)
        return f"has one scale per {unit}, but the config says one per {config_unit}"
    return ""


def _describe_scale_unit(block: Block) -> str:
    """The values that share a scale.

    >>> _describe_scale_unit((128, 128)), _describe_scale_unit((1, 0)), _describe_scale_unit((0, 0))
    ('128 × 128 block', 'output', 'tensor')
    """
    return SCALE_UNITS.get(block) or f"{_format_block(block)} block"


def _format_block(block: Block) -> str:
    return " × ".join(str(n) if n else "all" for n in block)


def describe_scheme(packed: Sequence[tuple[Group, Fit]], config: QuantizationScheme) -> str | None:
    """The quantisation of a file as text; None if nothing is quantised."""
    packings = Counter(_drop_activation_scales(fit.packing) for _, fit in packed if fit.packing)
    layouts = {packing.layout for packing in packings}
    parts = _describe_words([packing for packing in packings if packing.layout in WORDS])
    blocks = dict.fromkeys(packing.block for packing, _ in packings.most_common() if packing.layout == "fp8")
    if blocks:
        parts.append(_describe_fp8(blocks))
    if "fp4" in layouts:
        parts.append("FP4 in groups of 32")
    if "mxfp4" in layouts:
        parts.append("MXFP4")
    if parts:
        return " and ".join(parts)
    formats = dict.fromkeys(group.format for group, fit in packed if not fit.packing and group.format)
    if not formats:
        return None
    scheme = ", ".join(formats)
    if config.method == "words" and config.bits:
        scheme += f", {config.bits} bits" + (f", groups of {config.group}" if config.group else "")
    return scheme


def _describe_words(packings: Sequence[Packing]) -> list[str]:
    """GPTQ and AWQ, each with its numbers of bits and groups.

    >>> _describe_words([Packing("gptq", "I32", 4, (1, 128), "F16"), Packing("gptq", "I32", 8, (1, 128), "F16")])
    ['GPTQ, 4 and 8 bits, groups of 128']
    """
    parts = []
    for method in dict.fromkeys(WORDS[packing.layout] for packing in packings):
        alike = [packing for packing in packings if WORDS[packing.layout] == method]
        bits = _join_numbers({packing.bits for packing in alike})
        groups = _join_numbers({packing.block[1] for packing in alike} - {0})
        parts.append(f"{method}, {bits} bits, {f'groups of {groups}' if groups else 'one group'}")
    return parts


def _describe_fp8(blocks: Iterable[Block]) -> str:
    """FP8 with its blocks.

    >>> _describe_fp8([(128, 128)]), _describe_fp8([(1, 0), (0, 0)])
    ('FP8 in blocks of 128 × 128', 'FP8, one scale per output and one scale per tensor')
    """
    texts = []
    for block in blocks:
        if block in SCALE_UNITS:
            texts.append(f"one scale per {_describe_scale_unit(block)}")
        else:
            texts.append(f"in blocks of {_format_block(block)}")
    return f"FP8{', ' if texts[0].startswith('one ') else ' '}{' and '.join(texts)}"


def _join_numbers(numbers: Iterable[int]) -> str:
    return join_words(sorted(numbers), "and")


def _describe_gguf_scheme(tensors: Mapping[str, LogicalTensor]) -> str | None:
    """The type of most values if any values are quantised, otherwise None."""
    values: Counter[str] = Counter()
    for tensor in tensors.values():
        if tensor.format and tensor.shape:
            values[tensor.format] += prod(tensor.shape)
    if not any(BLOCKS[dtype].values > 1 for dtype in values if dtype in BLOCKS):
        return None
    return f"GGUF, mostly {values.most_common(1)[0][0]}"


def sum_totals(tensors: Mapping[str, LogicalTensor], checkpoint: Checkpoint) -> Totals:
    """Values, elements and bytes of all tensors."""
    shapes = [tensor.shape for tensor in tensors.values()]
    values = None if None in shapes else sum(prod(shape or ()) for shape in shapes)
    elements, size = None, checkpoint.total_size
    if checkpoint.has_all_shapes:
        elements = sum(prod(tensor.shape or ()) for tensor in checkpoint.tensors.values())
        size = sum(tensor.size or 0 for tensor in checkpoint.tensors.values())
    return Totals(values, elements, size, Fraction(8 * size, values) if size is not None and values else None)


def _fold_faults(faults: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Problems of single tensors, with the names of those that share a problem folded."""
    names_by_problem: dict[str, list[str]] = {}
    for name, problem in faults:
        names_by_problem.setdefault(problem, []).append(name)
    every = (
        (f"{make_printable(pattern)}: {problem}", len(alike))
        for problem, names in names_by_problem.items()
        for pattern, alike in fold_names(names)
    )
    lines = list(islice(every, MOST_FAULTS))
    more = sum(map(len, names_by_problem.values())) - sum(n for _, n in lines)
    return (*(line for line, _ in lines), *([f"and {more:,} more tensors with problems"] if more else []))

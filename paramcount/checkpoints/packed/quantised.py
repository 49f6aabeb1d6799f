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
from paramcount.checkpoints.packed.groups import StoredGroup, group_packed
from paramcount.errors import ParamcountError, locate_errors, make_printable
from paramcount.formats.packing import Key, Packing, PieceFit, Shape, drop_others
from paramcount.formats.quantization_config import Stated, read_stated
from paramcount.formats.weights import compute_bytes, get_format, get_label, load_formats
from paramcount.formats.weights.gguf import BLOCKS

MOST_FAULTS = 100  # lines
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
    with locate_errors(checkpoint.path):
        return _unpack_gguf(checkpoint) if checkpoint.format == "gguf" else _unpack_safetensors(checkpoint)


def _unpack_gguf(checkpoint: Checkpoint) -> Unpacked:
    """The scheme is the type of most values, if any values are quantised."""
    tensors = {
        name: build_plain_tensor(tensor.dtype, tensor.shape, "gguf") for name, tensor in checkpoint.tensors.items()
    }
    values: Counter[str] = Counter()
    for tensor in tensors.values():
        if tensor.format and tensor.shape:
            values[tensor.format] += prod(tensor.shape)
    is_quantised = any(BLOCKS[dtype].values > 1 for dtype in values if dtype in BLOCKS)
    scheme = f"GGUF, mostly {values.most_common(1)[0][0]}" if is_quantised else None
    return Unpacked(scheme, tensors, {}, (), sum_totals(tensors, checkpoint))


def read_quantization(checkpoint: Checkpoint) -> Stated:
    """What is stated in the checkpoint's quantisation config."""
    config = checkpoint.quantization_config
    return Stated() if config is None or checkpoint.format == "gguf" else read_stated(config)


def _unpack_safetensors(checkpoint: Checkpoint) -> Unpacked:
    stated = read_quantization(checkpoint)
    grouping = group_packed(checkpoint.tensors, stated)
    fits = list(zip(grouping.groups, fit_groups(grouping.groups, stated)))
    packed = {group.names[0]: (group, fit) for group, fit in fits}
    faults = [*grouping.faults, *find_contradictions(list(packed.values()), stated)]
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
    if stated.family and checkpoint.tensors and all(g.pattern.family != stated.family for g in grouping.groups):
        lines = (f"the config says {stated.name}, but no tensor is packed that way", *lines)
    scheme = describe_scheme(list(packed.values()), stated)
    return Unpacked(scheme, tensors, grouping.auxiliary, lines, sum_totals(tensors, checkpoint))


@lru_cache(4096)
def build_plain_tensor(dtype: str | None, shape: Shape | None, layout: str = "plain") -> LogicalTensor:
    """A tensor that is not packed; one object per type and shape, because there may be hundreds of thousands."""
    return LogicalTensor(shape, dtype, (), None if dtype is None or shape is None else Packing(layout, dtype))


def build_packed_tensor(group: StoredGroup, fit: PieceFit) -> LogicalTensor:
    transposed = group.pattern.transposed
    shape = _transpose(fit.shape) if transposed and fit.shape else fit.shape
    format = get_label(fit.packing) if fit.packing else group.format
    return LogicalTensor(shape, format, group.names, fit.packing, transposed)


def get_key(group: StoredGroup) -> Key:
    return group.pattern.layout, group.ending, group.pieces


def fit_groups(groups: Sequence[StoredGroup], stated: Stated) -> list[PieceFit]:
    """The fit of each group, which may depend on the others."""
    if len({group.pieces for group in groups}) > MOST_SHAPES:
        found = f"packed tensors have more than {MOST_SHAPES:,} shapes"
        raise ParamcountError(found, expected=f"at most {MOST_SHAPES:,}")
    counts: dict[str, Counter[Key]] = {}
    for group in groups:
        if group.pieces:
            counts.setdefault(group.pattern.layout.partition(" ")[0], Counter())[get_key(group)] += 1
    fits: dict[Key, PieceFit] = {}
    for name, of_format in counts.items():
        fits |= get_format(name).fit(of_format, stated)
    return [fits[get_key(group)] if group.pieces else PieceFit(group.shape, None) for group in groups]


def find_contradictions(packed: Sequence[tuple[StoredGroup, PieceFit]], stated: Stated) -> list[tuple[str, str]]:
    """Tensors whose packing contradicts the config, or the rest of the file."""
    faults = []
    problems: dict[Key, str] = {}
    for group, fit in packed:
        if fit.packing and fit.shape and not fit.faults:
            key = get_key(group)
            if key not in problems:
                problems[key] = get_format(fit.packing.layout).describe_contradiction(key, fit, stated)
            if problems[key]:
                faults.append((group.names[0], problems[key]))
    return faults + find_missing_indices(packed)


def find_missing_indices(packed: Sequence[tuple[StoredGroup, PieceFit]]) -> list[tuple[str, str]]:
    """Tensors without a group index, if most of the file's that may have one do."""
    indexed = [
        (group.names[0], "group index" in fit.packing.extras)
        for group, fit in packed
        if fit.packing and any(companion.what == "group index" for companion in group.pattern.companions)
    ]
    lacking = [name for name, has_index in indexed if not has_index]
    return [(name, "group index is missing") for name in lacking] if 2 * len(lacking) < len(indexed) else []


def describe_scheme(packed: Sequence[tuple[StoredGroup, PieceFit]], stated: Stated) -> str | None:
    """The quantisation of a file as text; None if nothing is quantised."""
    packings = [
        packing for packing, _ in Counter(drop_others(fit.packing) for _, fit in packed if fit.packing).most_common()
    ]
    parts = []
    for format in load_formats():
        own = [packing for packing in packings if packing.layout != "plain" and get_format(packing.layout) is format]
        parts += format.describe(own) if own else []
    if parts:
        return " and ".join(parts)
    formats = dict.fromkeys(group.format for group, fit in packed if not fit.packing)
    if not formats:
        return None
    scheme = ", ".join(formats)
    if stated.bits:
        scheme += f", {stated.bits} bits" + (f", groups of {stated.group}" if stated.group else "")
    return scheme


def sum_totals(tensors: Mapping[str, LogicalTensor], checkpoint: Checkpoint) -> Totals:
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

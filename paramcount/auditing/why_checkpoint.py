"""Why a checkpoint has as many values as it does: the model's total, and causes that explain the difference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint, DtypeTotals, sum_dtypes
from paramcount.checkpoints.classify import UNKNOWN, get_display_name
from paramcount.checkpoints.findings import BIAS_OF_PACKED
from paramcount.checkpoints.folding import split_name
from paramcount.checkpoints.packed.quantised import Unpacked
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.counting.arithmetic import format_arithmetic, format_sum
from paramcount.counting.results import to_plain
from paramcount.explaining.causes import (
    BUFFERS,
    DUPLICATES,
    LEGACY_BUFFERS,
    MAIN_LAYERS,
    MTP_LAYER,
    MTP_LAYERS,
    OWN_TENSORS,
    TIED_HEAD,
    Cause,
    CauseItem,
    name_mtp_layers,
)
from paramcount.explaining.why import Account
from paramcount.flow import Repeat, TensorRow
from paramcount.formats.weights import get_format
from paramcount.formats.weights.gguf import BLOCKS
from paramcount.zoo import Model

Shape: TypeAlias = tuple[int, ...]

# The causes in order of display. Those of published figures too have the names in `causes`.
OMITTED, MISSING, MISSHAPEN = "omitted by the converter", "missing tensors", "tensors with a wrong shape"
COPIES = "tied copies"
SCALES, ZEROS, INDICES, ACTIVATIONS = "scales", "zero points", "group indices", "activation scales"
BIASES, UNREAD, OTHERS = "zero biases of packed weights", "allocated but never used", "other buffers"
PARTS, UNEXPECTED = "parts outside the total", "unexpected tensors"
ORDER = (
    OMITTED, MISSING, MISSHAPEN, TIED_HEAD, COPIES, BUFFERS, LEGACY_BUFFERS, MTP_LAYER, SCALES, ZEROS, INDICES,
    ACTIVATIONS, BIASES, UNREAD, OTHERS, PARTS, UNEXPECTED,
)  # fmt: skip
CAUSES_BY_CLASS = {
    "scale": SCALES,
    "tensor scale": SCALES,
    "zero point": ZEROS,
    "group index": INDICES,
    "activation scale": ACTIVATIONS,
    BIAS_OF_PACKED: BIASES,
    "never read": UNREAD,
    "buffer": OTHERS,
}
CAUSES_BY_KIND = {  # {kind of a tensor that the total does not include: (cause, item)}
    "tied": (COPIES, ""),
    "buffer": (BUFFERS, ""),
    "legacy_buffer": (LEGACY_BUFFERS, ""),
    "mtp": (MTP_LAYER, OWN_TENSORS),
    "mtp_buffer": (MTP_LAYER, BUFFERS),
    "mtp_copy": (MTP_LAYER, DUPLICATES),
}
# Items that come before all others, in this order.
ITEMS = ("", "as stored", "as expected", OWN_TENSORS, BUFFERS, DUPLICATES, MAIN_LAYERS, MTP_LAYERS)
CAUSES_WITH_NOTE = (MTP_LAYER, OMITTED, PARTS, UNEXPECTED)  # the note lists their items
MOST_SHAPES = 40  # in one sum


class Part(NamedTuple):
    """A tensor that differs from the model's total, with the sign of its values."""

    cause: str  # one of ORDER
    item: str  # of the cause; "" if it has one item
    sign: int
    name: str
    shape: Shape | None  # None if unknown


@dataclass(frozen=True)
class CheckpointExplanation:
    """The values in a checkpoint as a model's total and causes."""

    verification: Verification
    values: int | None  # in the file after unpacking, including scales; None if some shapes are unknown
    account: Account  # the total and its causes; if `values` is None, with declared shapes
    unknown: tuple[str, ...]  # causes with an unknown number of values

    @property
    def id(self) -> str:
        return self.verification.model.id

    @property
    def name(self) -> str:
        return self.verification.model.name

    @property
    def path(self) -> str:
        return str(self.verification.checkpoint.path)

    @cached_property
    def types(self) -> tuple[DtypeTotals, ...]:
        """The stored data types, largest first."""
        return sum_dtypes(self.verification.checkpoint)

    @property
    def size(self) -> int | None:
        """Bytes of all files; None if one is missing."""
        sizes = [file.size for file in self.verification.checkpoint.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def display_account(self) -> Account:
        """The account with the display names of its items and notes."""
        causes = []
        for cause in self.account.causes:
            note = ", ".join(map(get_display_name, cause.note.split(", ")))
            items = tuple(item._replace(name=get_display_name(item.name)) for item in cause.items)
            causes.append(cause._replace(note=note, items=items))
        return replace(self.account, causes=tuple(causes))

    @property
    def left_over(self) -> int | None:
        """Values that no cause explains; None if the values are unknown."""
        return None if self.values is None else self.values - self.account.value

    @property
    def ok(self) -> bool:
        """Whether the checkpoint is complete and every value is explained."""
        return self.verification.ok and not self.left_over

    @property
    def byte_sums(self) -> list[str]:
        """The arithmetic of the bytes of values and files."""
        if not self.types or self.values is None:
            return []
        bytes = sum(totals.bytes for totals in self.types)
        sums = [f"bytes: {' + '.join(map(describe_dtype, self.types))} = {bytes:,}"]
        if self.size is not None:
            sums.append(f"files: {self.size:,} bytes = values {bytes:,} + headers {self.size - bytes:,}")
        return sums

    @property
    def verdict(self) -> str:
        """The result for JSON and CSV, whose values are stable; see `summary` for text."""
        if not self.ok:
            return "not accounted for"
        return "names only" if self.values is None else "exact"

    @property
    def summary(self) -> str:
        """The result in words: complete, or how many problems there are."""
        return self.verification.summary if self.ok or not self.verification.ok else "some values are unexplained"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data for JSON."""
        names = ("id", "name", "path", "values", "verdict", "ok", "left_over", "account", "unknown", "types", "size")
        from_verification = ("format", "files", "tensors", "scheme", "faults", "remarks")
        return {
            **{name: to_plain(getattr(self, name)) for name in names},
            "bytes": self.verification.size.found,
            **{name: to_plain(getattr(self.verification, name)) for name in from_verification},
        }


def describe_dtype(totals: DtypeTotals) -> str:
    """The bytes of one data type: values × size, or blocks × size.

    >>> describe_dtype(DtypeTotals("BF16", 1, 4096, 8192)), describe_dtype(DtypeTotals("F4", 1, 4096, 2048))
    ('4,096 × 2 (BF16)', '2,048 (F4)')
    >>> describe_dtype(DtypeTotals("Q4_K", 1, 4096, 2304))
    '16 × 144 (blocks of Q4_K)'
    """
    block = BLOCKS.get(totals.dtype)
    if totals.elements and totals.bytes % totals.elements == 0:
        return f"{totals.elements:,} × {totals.bytes // totals.elements} ({totals.dtype})"
    if block and block.values > 1:
        return f"{totals.bytes // block.size:,} × {block.size} (blocks of {totals.dtype})"
    return f"{totals.bytes:,} ({totals.dtype})"


def explain_checkpoint(model: Model, checkpoint: Checkpoint) -> CheckpointExplanation:
    """Why a checkpoint has as many values as it does: a model's total, and tensors that the file omits or adds.

    Units: values after unpacking; scales and zero points of a quantised file as stored.
    """
    verification = verify_checkpoint(model, checkpoint)
    parts = list(iterate_parts(verification))
    causes = (*find_omitted(verification), *build_causes(verification, parts))
    total = verification.count.total
    account = Account("total", total, causes, total + sum(cause.units for cause in causes), "exact")
    unknown = dict.fromkeys(name_cause(verification, part.cause) for part in parts if part.shape is None)
    return CheckpointExplanation(verification, count_values(verification), account, tuple(unknown))


def count_values(verification: Verification) -> int | None:
    """All values in the file; None if some shapes are unknown."""
    shapes = [logical.shape for logical in verification.content.tensors.values()]
    shapes += [verification.checkpoint.tensors[name].shape for name in verification.content.auxiliary]
    return None if None in shapes else sum(prod(shape or ()) for shape in shapes)


def find_omitted(verification: Verification) -> Iterator[Cause]:
    """Components that files of this kind never contain, such as an encoder in a file of its own."""
    written, declared = verification.expected, verification.count.components
    items = []
    for name, n in declared.items():
        if written[name] != n:
            arithmetic = f"{written[name]:,} − {n:,}" if written[name] else format_arithmetic(verification.count)[name]
            items.append(CauseItem(name, written[name] - n, arithmetic))
    if items:
        yield build_cause(OMITTED, OMITTED, items)


def iterate_parts(verification: Verification) -> Iterator[Part]:
    """Every tensor that differs from the model's total, in the order of the model."""
    matches, file_tensors = verification.matches, verification.content.tensors
    for name, tensor in matches.missing.items():
        if tensor.is_counted:
            yield Part(MISSING, tensor.main_component, -1, name, tensor.shape)
    owners = {other: name for name, logical in file_tensors.items() for other in logical.file_names[1:]}
    declared = {**matches.matching, **matches.wrong_shape, **matches.by_shape}
    for name, tensor in declared.items():
        shape = file_tensors[name].shape
        if not tensor.is_counted:
            is_head = tensor.kind == "tied" and tensor.component == "lm_head"
            cause, item = (TIED_HEAD, "") if is_head else CAUSES_BY_KIND[tensor.kind]
            yield Part(cause, item, 1, name, tensor.shape if shape is None else shape)
        elif name in matches.wrong_shape:
            yield Part(MISSHAPEN, "as stored", 1, name, shape)
            yield Part(MISSHAPEN, "as expected", -1, name, tensor.shape)
        for other in file_tensors[name].file_names[1:]:
            yield build_auxiliary_part(verification, other, tensor)
    for name in verification.content.auxiliary:
        if owners.get(name) not in declared:
            yield build_auxiliary_part(verification, name, None)
    for name in matches.unexpected:
        finding = verification.findings[name]
        cause = CAUSES_BY_CLASS.get(finding.what, PARTS) if finding.ok else UNEXPECTED
        yield Part(cause, finding.what if cause in CAUSES_WITH_NOTE else "", 1, name, file_tensors[name].shape)


def build_auxiliary_part(verification: Verification, name: str, tensor: TensorRow | None) -> Part:
    """A scale, zero point or other tensor that belongs to the packed values of `tensor`."""
    cause = CAUSES_BY_CLASS[verification.content.auxiliary[name]]
    item = MTP_LAYERS if tensor and tensor.part == "mtp" else MAIN_LAYERS
    return Part(cause, item, 1, name, verification.checkpoint.tensors[name].shape)


def build_causes(verification: Verification, parts: Sequence[Part]) -> Iterator[Cause]:
    causes: dict[str, dict[tuple[str, int], list[Part]]] = {}
    for part in parts:
        if part.shape is not None:
            causes.setdefault(part.cause, {}).setdefault((part.item, part.sign), []).append(part)
    for cause in sorted(causes, key=ORDER.index):
        items = []
        for name, sign in sorted(causes[cause], key=lambda key: (*ITEMS, key[0]).index(key[0])):
            group = causes[cause][name, sign]
            has_few_shapes = len({part.shape for part in group}) <= MOST_SHAPES
            arithmetic = format_sum(rebuild_rows(group)) if has_few_shapes else f"{len(group):,} tensors"
            items.append(CauseItem(name, sign * sum(prod(part.shape or ()) for part in group), arithmetic))
        if sum(item.units for item in items):
            yield build_cause(cause, name_cause(verification, cause), items)


def build_cause(cause: str, name: str, items: Sequence[CauseItem]) -> Cause:
    """A cause with its items. `name`: its display name."""
    note = ", ".join(item.name for item in items if item.name != UNKNOWN) if cause in CAUSES_WITH_NOTE else ""
    units = sum(item.units for item in items)
    return Cause(name, units, note, tuple(item if len(items) > 1 else item._replace(name="") for item in items))


def name_cause(verification: Verification, cause: str) -> str:
    """The display name of a cause: scales by their method, MTP layers with their number."""
    if cause == MTP_LAYER:
        matching = verification.matches.matching.values()
        return name_mtp_layers(tensor for tensor in matching if tensor.kind == "mtp")
    if cause == SCALES:
        return name_scales(verification.content)
    return cause


def name_scales(content: Unpacked) -> str:
    """The display name of scales: by the packing of the tensors, or by the scheme if only names are known."""
    packings = {
        logical.packing for logical in content.tensors.values() if logical.packing and len(logical.file_names) > 1
    }
    if packings:
        names = {get_format(packing.layout).get_short_name(packing) for packing in packings}
        return " and ".join(sorted(f"{name} {SCALES}" for name in names))
    scheme = re.match(r"\w+", content.scheme or "")
    return f"{scheme[0]} {SCALES}" if scheme else SCALES


def rebuild_rows(parts: Iterable[Part]) -> Iterator[TensorRow]:
    kinds: dict[tuple[tuple[str, ...], Shape], list[tuple[int, ...]]] = {}
    for part in parts:
        words, indices = split_name(part.name)
        kinds.setdefault((words, part.shape or ()), []).append(indices)
    for (words, shape), places in kinds.items():
        sizes = [len(set(axis)) for axis in zip(*places)]
        if prod(sizes) == len(places):  # every combination of the indices
            axes = [("layer" if i == 0 else "expert", n) for i, n in enumerate(sizes)]
        else:
            axes = [("layer", len(places))]
        repeats = tuple(Repeat(axis, n, n) for axis, n in axes if n > 1)
        yield TensorRow("#".join(words), shape, "", "", repeats=repeats)

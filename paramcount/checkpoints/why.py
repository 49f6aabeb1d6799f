"""Why a checkpoint holds as many values as it does: the model's total and named causes that explain the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint, Type, sum_dtypes
from paramcount.checkpoints.classify import get_display_name
from paramcount.checkpoints.findings import BIAS_OF_PACKED
from paramcount.checkpoints.folding import split_name
from paramcount.checkpoints.matching import is_counted
from paramcount.checkpoints.verify import Comparison, Verification, build_verification, compare_tensors, sum_declared
from paramcount.counting.arithmetic import format_arithmetic, format_sum
from paramcount.counting.tensors import Tensor, locate_component
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
    Item,
    name_mtp_layers,
)
from paramcount.explaining.explanation import to_plain
from paramcount.explaining.why import Account
from paramcount.flow import Repeat
from paramcount.formats.gguf import BLOCKS
from paramcount.zoo import Model

Shape: TypeAlias = tuple[int, ...]

# The causes in order of display. Those of published figures too have the names in `causes`.
LEFT_OUT, MISSING, MISSHAPEN = "omitted by the converter", "missing tensors", "tensors with another shape"
COPIES = "tied copies"
SCALES, ZEROS, INDICES, ACTIVATIONS = "scales", "zero points", "group indices", "activation scales"
BIASES, UNREAD, OTHERS = "zero biases of packed weights", "allocated but never used", "other buffers"
PARTS, UNEXPECTED = "parts outside the total", "unexpected tensors"
ORDER = (
    LEFT_OUT, MISSING, MISSHAPEN, TIED_HEAD, COPIES, BUFFERS, LEGACY_BUFFERS, MTP_LAYER, SCALES, ZEROS, INDICES, ACTIVATIONS, BIASES,
    UNREAD, OTHERS, PARTS, UNEXPECTED,
)  # fmt: skip
CAUSES_BY_CLASS = {
    "scale": SCALES, "zero point": ZEROS, "group index": INDICES, "activation scale": ACTIVATIONS,
    BIAS_OF_PACKED: BIASES, "never read": UNREAD, "buffer": OTHERS,
}  # fmt: skip
ITEMS = (
    "",
    "as stored",
    "as expected",
    OWN_TENSORS,
    BUFFERS,
    DUPLICATES,
    MAIN_LAYERS,
    MTP_LAYERS,
)  # sorted before all others
CAUSES_WITH_NOTE = (MTP_LAYER, LEFT_OUT, PARTS, UNEXPECTED)  # causes with their items as note
MOST_SHAPES = 40  # of one sum
METHODS = {
    "fp8": "FP8 scales",
    "fp4": "FP4 scales",
    "mxfp4": "MXFP4 scales",
    "gptq": "GPTQ scales",
}  # by layout; AWQ for all others


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

    id: str
    name: str
    path: str
    values: int | None  # in the file after unpacking, including scales; None if some shapes are unknown
    account: Account  # the total and its causes; if `values` is None, with declared shapes
    unknown: tuple[str, ...]  # causes with an unknown number of values
    types: tuple[Type, ...]  # stored data types, largest first
    size: int | None  # bytes of all files; None if one is missing
    verification: Verification

    @property
    def display_account(self) -> Account:
        """The account with the display names of its items and notes."""
        causes = [
            cause._replace(
                note=", ".join(map(get_display_name, cause.note.split(", "))),
                items=tuple(item._replace(name=get_display_name(item.name)) for item in cause.items),
            )
            for cause in self.account.causes
        ]
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
        bytes = sum(type.bytes for type in self.types)
        if not self.types or self.values is None:
            return []
        found = [f"bytes: {' + '.join(map(describe_dtype, self.types))} = {bytes:,}"]
        return (
            [*found, f"files: {self.size:,} bytes = values {bytes:,} + headers {self.size - bytes:,}"]
            if self.size is not None
            else found
        )

    @property
    def verdict(self) -> str:
        """The result for JSON and CSV, whose values are stable; see `summary` for text."""
        return "not accounted for" if not self.ok else "names only" if self.values is None else "exact"

    @property
    def summary(self) -> str:
        """The result in words: complete, or how many problems there are."""
        return self.verification.summary if self.ok or not self.verification.ok else "some values are unexplained"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data for JSON."""
        plain = {name: getattr(self, name) for name in ("id", "name", "path", "values", "verdict", "ok", "left_over")}
        checked = {
            name: to_plain(getattr(self.verification, name))
            for name in ("format", "files", "tensors", "scheme", "faults", "remarks")
        }
        own = {name: to_plain(getattr(self, name)) for name in ("account", "unknown", "types", "size")}
        return plain | own | {"bytes": self.verification.size.found} | checked


def describe_dtype(type: Type) -> str:
    """The bytes of one data type: values × size, or blocks × size.

    >>> describe_dtype(Type("BF16", 1, 4096, 8192)), describe_dtype(Type("Q4_K", 1, 4096, 2304)), describe_dtype(Type("F4", 1, 4096, 2048))
    ('4,096 × 2 (BF16)', '16 × 144 (blocks of Q4_K)', '2,048 (F4)')
    """
    block = BLOCKS.get(type.dtype)
    if type.elements and type.bytes % type.elements == 0:
        return f"{type.elements:,} × {type.bytes // type.elements} ({type.dtype})"
    if block and block.values > 1:
        return f"{type.bytes // block.size:,} × {block.size} (blocks of {type.dtype})"
    return f"{type.bytes:,} ({type.dtype})"


def explain_checkpoint(model: Model, checkpoint: Checkpoint) -> CheckpointExplanation:
    """Why a checkpoint holds as many values as it does: a model's total, and tensors that the file omits or adds.

    Units: values after unpacking; scales and zero points of a quantised file as stored.
    """
    found = compare_tensors(model, checkpoint)
    parts = list(iterate_parts(found))
    causes = (*find_omitted(found), *build_causes(found, parts))
    total = found.count.total
    account = Account("total", total, causes, total + sum(cause.units for cause in causes), "exact")
    unknown = dict.fromkeys(name_cause(found, part.cause) for part in parts if part.shape is None)
    sizes = [file.size for file in checkpoint.files]
    return CheckpointExplanation(
        id=model.id,
        name=model.name,
        path=str(checkpoint.path),
        values=count_values(found),
        account=account,
        unknown=tuple(unknown),
        types=sum_dtypes(checkpoint),
        size=None if None in sizes else sum(size or 0 for size in sizes),
        verification=build_verification(model, found),
    )


def count_values(found: Comparison) -> int | None:
    """All values in the file; None if some shapes are unknown."""
    shapes = [logical.shape for logical in found.content.tensors.values()]
    shapes += [found.checkpoint.tensors[name].shape for name in found.content.auxiliary]
    return None if None in shapes else sum(prod(shape or ()) for shape in shapes)


def find_omitted(found: Comparison) -> Iterator[Cause]:
    """Components that files of this kind never contain, such as an encoder in a file of its own."""
    written, declared = sum_declared(found.tensors), found.count.components
    items = []
    for name in declared:
        if written[name] != declared[name]:
            partly = f"{written[name]:,} − {declared[name]:,}"
            items.append(
                Item(
                    name,
                    written[name] - declared[name],
                    partly if written[name] else format_arithmetic(found.count)[name],
                )
            )
    if items:
        yield build_cause(LEFT_OUT, LEFT_OUT, items)


def iterate_parts(found: Comparison) -> Iterator[Part]:
    """Every tensor that differs from the model's total, in the order of the model."""
    matches, file_tensors = found.matches, found.content.tensors
    for name, tensor in matches.missing.items():
        if is_counted(tensor):
            yield Part(MISSING, locate_component(tensor.part, tensor.component)[0], -1, name, tensor.shape)
    packed = {other: name for name, logical in file_tensors.items() for other in logical.file_names[1:]}
    declared = {**matches.matching, **matches.wrong_shape, **matches.by_shape}
    for name, tensor in declared.items():
        shape = file_tensors[name].shape
        if not is_counted(tensor):
            yield Part(*classify_uncounted(tensor), 1, name, tensor.shape if shape is None else shape)
        elif name in matches.wrong_shape:
            yield Part(MISSHAPEN, "as stored", 1, name, shape)
            yield Part(MISSHAPEN, "as expected", -1, name, tensor.shape)
        for other in file_tensors[name].file_names[1:]:
            yield classify_packing(found, name, other, tensor)
    for name in found.content.auxiliary:
        if packed.get(name) not in declared:
            yield classify_packing(found, packed.get(name), name, None)
    for name in matches.unexpected:
        finding = found.findings[name]
        cause = CAUSES_BY_CLASS.get(finding.what, PARTS) if finding.ok else UNEXPECTED
        yield Part(cause, finding.what if cause in CAUSES_WITH_NOTE else "", 1, name, file_tensors[name].shape)


def classify_uncounted(tensor: Tensor) -> tuple[str, str]:
    """The cause and item of a declared tensor that is not included in the total."""
    if tensor.part == "mtp":
        return MTP_LAYER, DUPLICATES if tensor.tied_to else OWN_TENSORS if tensor.role == "parameter" else BUFFERS
    if tensor.tied_to:
        return TIED_HEAD if tensor.component == "lm_head" else COPIES, ""
    return LEGACY_BUFFERS if tensor.role == "legacy_buffer" else BUFFERS, ""


def classify_packing(found: Comparison, name: str | None, other: str, tensor: Tensor | None) -> Part:
    """A scale, zero point or other tensor that belongs to packed values."""
    cause = CAUSES_BY_CLASS[found.content.auxiliary[other]]
    return Part(
        cause,
        MTP_LAYERS if tensor and tensor.part == "mtp" else MAIN_LAYERS,
        1,
        other,
        found.checkpoint.tensors[other].shape,
    )


def build_causes(found: Comparison, parts: Sequence[Part]) -> Iterator[Cause]:
    """The causes that the parts add up to."""
    causes: dict[str, dict[tuple[str, int], list[Part]]] = {}
    for part in parts:
        if part.shape is not None:
            causes.setdefault(part.cause, {}).setdefault((part.item, part.sign), []).append(part)
    for cause in sorted(causes, key=ORDER.index):
        items = []
        for (name, sign), group in sorted(
            causes[cause].items(), key=lambda item: ITEMS.index(item[0][0]) if item[0][0] in ITEMS else len(ITEMS)
        ):
            items.append(Item(name, sign * sum(prod(part.shape or ()) for part in group), format_parts(group)))
        if sum(item.units for item in items):
            yield build_cause(cause, name_cause(found, cause), items)


def build_cause(cause: str, name: str, items: Sequence[Item]) -> Cause:
    """A cause with its items. `name`: its display name."""
    note = ", ".join(item.name for item in items) if cause in CAUSES_WITH_NOTE else ""
    return Cause(
        name,
        sum(item.units for item in items),
        note,
        tuple(item if len(items) > 1 else item._replace(name="") for item in items),
    )


def name_cause(found: Comparison, cause: str) -> str:
    """The display name of a cause: scales by their method, MTP layers with their number."""
    if cause == MTP_LAYER:
        return name_mtp_layers(
            tensor for tensor in found.matches.matching.values() if tensor.part == "mtp" and is_own(tensor)
        )
    if cause == SCALES:
        layouts = {
            logical.packing.layout
            for logical in found.content.tensors.values()
            if logical.packing and len(logical.file_names) > 1
        }
        scheme = re.match(r"\w+", found.content.scheme or "")  # if only names are known
        return (
            " and ".join(sorted({METHODS.get(layout, "AWQ scales") for layout in layouts}))
            or f"{scheme[0] if scheme else ''} {SCALES}".lstrip()
        )
    return cause


def is_own(tensor: Tensor) -> bool:
    return tensor.role == "parameter" and not tensor.tied_to


def format_parts(parts: Sequence[Part]) -> str:
    """The arithmetic of tensors; only their number if they have too many shapes."""
    return (
        f"{len(parts):,} tensors"
        if len({part.shape for part in parts}) > MOST_SHAPES
        else format_sum(rebuild_rows(parts))
    )


def rebuild_rows(parts: Iterable[Part]) -> Iterator[Tensor]:
    """Tensors grouped by name without indices, as rows for the arithmetic."""
    kinds: dict[tuple[tuple[str, ...], Shape], list[tuple[int, ...]]] = {}
    for part in parts:
        words, indices = split_name(part.name)
        kinds.setdefault((words, part.shape or ()), []).append(indices)
    for (words, shape), places in kinds.items():
        counts = [len(set(axis)) for axis in zip(*places)]
        axes = (
            [("layer" if i == 0 else "expert", n) for i, n in enumerate(counts)]
            if prod(counts) == len(places)
            else [("layer", len(places))]
        )
        yield Tensor(
            "#".join(words), shape, "", "", "", tuple(Repeat(axis, n, n) for axis, n in axes if n > 1), (), None
        )

"""The parameters in a checkpoint by component, its other values, and the zoo models that it may contain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint, DtypeTotals, sum_dtypes
from paramcount.checkpoints.classify import classify_tensor
from paramcount.checkpoints.findings import DUPLICATE
from paramcount.checkpoints.folding import fold_names
from paramcount.checkpoints.identify import Nearest, identify_models
from paramcount.checkpoints.name_meanings import Meanings, read_meanings
from paramcount.checkpoints.opening.sampling import have_same_samples
from paramcount.checkpoints.packed.quantised import Unpacked, as_decimal, unpack
from paramcount.checkpoints.verify import Verification
from paramcount.counting.components import COMPONENTS
from paramcount.counting.results import JsonResult, alias

MOST_TABLES = 16  # embeddings and heads that are compared with the token embedding

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = Mapping[str, Mapping[Shape, int]]  # {component or class: {shape: number of tensors}}


class NamePattern(NamedTuple):
    """Tensors that differ in their indices only and have the same type and shape."""

    pattern: str  # h.{0-11}.attn.c_attn.weight
    what: str  # component (the first one of a fused tensor), or class if not a parameter
    dtype: str | None  # as stored
    shape: Shape | None  # as stored
    tensors: int
    parameters: int | None  # learned values after unpacking; None if only names are known


class Copy(NamedTuple):
    """An embedding or head with the shape of the token embedding."""

    name: str
    of: str
    same: bool | None  # whether sampled values are equal; None if values are not available or have another type
    values: int


@dataclass(frozen=True, repr=False)
class StoredCount(JsonResult):
    """The contents of a checkpoint. Units: parameters, unless stated otherwise."""

    json_fields = (
        "path", "format", "files", "tensors", "whole", "total", "by", "untold", "scheme", "elements", "bytes",
        "experts", "bits_per_value", "components", "beside", "stacks", "zoo", "faults", "remarks", "nearest", "types",
        "copies", "patterns",
    )  # fmt: skip

    path: str
    format: str  # safetensors | gguf | pytorch
    files: int
    tensors: int
    whole: bool  # whether every tensor's shape is known
    total: int | None  # learned values without tied copies and MTP layers; None if only names are known
    components: Mapping[str, int]  # every name of COMPONENTS; sums to total. Empty if only names are known
    by: str  # source of the components: names | declaration
    untold: int  # tensors with unrecognised names, counted in `other`
    beside: Mapping[str, int | None]  # values outside the total by class: buffers, scales, copies, MTP layers
    zoo: tuple[str, ...]  # ids of all zoo models whose tensors the file contains
    nearest: Nearest | None  # if `zoo` is empty
    scheme: str | None  # quantisation of the file
    elements: int | None  # as stored, including packed words and scales
    bytes: int | None
    bits: Fraction | None  # bits per value
    types: tuple[DtypeTotals, ...]  # the most bytes first
    stacks: Mapping[str, int]  # {name prefix of a stack: number of layers}
    experts: int  # largest number in a layer
    copies: tuple[Copy, ...]
    faults: tuple[str, ...]  # contradictions between files, or with an index or the packing
    notes: tuple[str, ...]  # values that were not counted or checked; harmless
    patterns: tuple[NamePattern, ...] = field(repr=False)
    shapes: Shapes = field(repr=False)  # by component, after unpacking

    remarks = alias("notes")

    @property
    def bits_per_value(self) -> float | None:
        return as_decimal(self.bits)


def summarize_checkpoint(checkpoint: Checkpoint) -> StoredCount:
    content = unpack(checkpoint)
    meanings = read_meanings({name: logical.shape for name, logical in content.tensors.items()})
    match = identify_models(checkpoint, content, meanings)
    copies = find_copies(checkpoint, content, meanings)
    if match.verification:
        labels = label_by_declaration(match.verification)
    else:
        labels = dict(meanings.components) | {copy.name: DUPLICATE for copy in copies if copy.same}
    values = {name: prod(logical.shape) for name, logical in content.tensors.items() if logical.shape is not None}
    if match.verification and len(values) in (0, len(content.tensors)):  # it splits fused tensors by component
        components, other_values = dict(match.verification.found), match.verification.beside
    else:
        components, other_values = sum_components(labels, values, content, checkpoint)
    patterns = build_patterns(checkpoint, content, labels, values)
    has_total = bool(values) or not content.tensors
    notes = match.verification.notes if match.verification else checkpoint.notes
    return StoredCount(
        path=str(checkpoint.path),
        format=checkpoint.format,
        files=len(checkpoint.files),
        tensors=len(checkpoint.tensors),
        whole=checkpoint.has_all_shapes,
        total=sum(components.values()) if has_total else None,
        components=components if has_total else {},
        by="declaration" if match.verification else "names",
        untold=0 if match.verification else len(meanings.unrecognized),
        beside=other_values,
        zoo=match.ids,
        nearest=match.nearest,
        scheme=content.scheme,
        elements=content.totals.elements,
        bytes=content.totals.bytes,
        bits=content.totals.bits,
        types=sum_dtypes(checkpoint),
        stacks=meanings.stacks,
        experts=meanings.experts,
        copies=copies,
        faults=(*checkpoint.faults, *content.faults),
        notes=(*notes, *collect_notes(len(values), content, match.ids, patterns)),
        patterns=patterns,
        shapes=count_shapes(labels, content),
    )


def label_by_declaration(verification: Verification) -> dict[str, str]:
    """{tensor: its component in the model (the first one of a fused tensor), or its class if it is not a parameter}"""
    matches, labels = verification.matches, {}
    declared = dict(matches.matching) | dict(matches.by_shape)
    components = {tensor: tensor.split()[0].main_component for tensor in declared.values()}
    for name in verification.content.tensors:
        finding = verification.findings.get(name)
        labels[name] = finding.what if finding else components[declared[name]]
    return labels


def sum_components(
    labels: Mapping[str, str], values: Mapping[str, int], content: Unpacked, checkpoint: Checkpoint
) -> tuple[dict[str, int], dict[str, int | None]]:
    """Learned values of each component, and all other values by class.

    Args:
        labels: {tensor: component or class}
        values: {tensor: number of values} for tensors with known shapes
    """
    components, others = dict.fromkeys(COMPONENTS, 0), Counter[str]()
    for name, n in values.items():
        if labels[name] in components:
            components[labels[name]] += n
        else:
            others[labels[name]] += n
    for name, role in content.auxiliary.items():
        shape = checkpoint.tensors[name].shape
        if shape is not None:
            others[role] += prod(shape)
    return components, dict(others)


def find_copies(checkpoint: Checkpoint, content: Unpacked, meanings: Meanings) -> tuple[Copy, ...]:
    """Embeddings and heads with the shape of the token embedding, and whether each is a copy of it."""
    tables = []
    for name in meanings.tables:
        shape = content.tensors[name].shape
        if shape and len(shape) == 2:
            tables.append((name, shape))
    if not tables:
        return ()
    original, shape = tables[0]
    candidates = [name for name, other_shape in tables[1:MOST_TABLES] if other_shape == shape]
    values = prod(shape)
    return tuple(Copy(name, original, are_copies(checkpoint, content, name, original), values) for name in candidates)


def are_copies(checkpoint: Checkpoint, content: Unpacked, a: str, b: str) -> bool | None:
    """Whether sampled values of two tensors are equal; None if they cannot be compared."""
    names, other_names = content.tensors[a].list_file_names(a), content.tensors[b].list_file_names(b)
    pairs = list(zip(names, other_names))
    tensors = checkpoint.tensors
    if len(names) != len(other_names) or any(tensors[x].dtype != tensors[y].dtype for x, y in pairs):
        return None
    results = [have_same_samples(checkpoint, x, y) for x, y in pairs]
    if False in results:
        return False
    return None if None in results else True


def count_shapes(labels: Mapping[str, str], content: Unpacked) -> dict[str, Counter[Shape]]:
    """{component or class: {shape: number of tensors}}"""
    counts: dict[str, Counter[Shape]] = {}
    for name, logical in content.tensors.items():
        if logical.shape is not None:
            counts.setdefault(labels[name], Counter())[logical.shape] += 1
    return counts


def build_patterns(
    checkpoint: Checkpoint, content: Unpacked, labels: Mapping[str, str], values: Mapping[str, int]
) -> tuple[NamePattern, ...]:
    """All tensors of the files, grouped by label, type, shape and pattern of names."""
    logical_names = {logical.list_file_names(name)[0]: name for name, logical in content.tensors.items()}
    groups: dict[tuple[str, str | None, Shape | None], list[str]] = {}
    for name, tensor in checkpoint.tensors.items():
        label = labels[logical_names[name]] if name in logical_names else content.auxiliary[name]
        groups.setdefault((label, tensor.dtype, tensor.shape), []).append(name)
    patterns = []
    for (label, dtype, shape), all_names in groups.items():
        for pattern, names in fold_names(all_names):
            sizes = [values.get(logical_names[name]) for name in names if name in logical_names]
            parameters = 0 if label not in COMPONENTS else None if None in sizes else sum(size or 0 for size in sizes)
            patterns.append(NamePattern(pattern, label, dtype, shape, len(names), parameters))
    return tuple(patterns)


def collect_notes(
    with_shapes: int, content: Unpacked, ids: Sequence[str], patterns: Iterable[NamePattern]
) -> list[str]:
    """Notes on tensors that were not counted and on adapters.

    Args:
        with_shapes: number of tensors with known shapes
        ids: zoo models in the file
    """
    notes, n = [], len(content.tensors)
    if with_shapes < n:
        tensors = f"{n - with_shapes:,} of {n:,} tensors" if with_shapes else "all tensors"
        notes.append(f"shapes unknown for {tensors}, which are not counted")
    if not ids:
        in_adapter = sum(
            pattern.tensors for pattern in patterns if classify_tensor(pattern.pattern, pattern.shape) == "adapter"
        )
        if in_adapter:
            tensors = "1 tensor belongs" if in_adapter == 1 else f"{in_adapter:,} tensors belong"
            notes.append(f"{tensors} to an adapter; its base model is not in this checkpoint")
    return notes

"""The parameters in a checkpoint by component, its other values, and the zoo models that it may contain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint, Type, sum_dtypes
from paramcount.checkpoints.classify import classify_tensor
from paramcount.checkpoints.folding import fold_names
from paramcount.checkpoints.identify import Nearest, identify
from paramcount.checkpoints.matching import split_by_component
from paramcount.checkpoints.name_meanings import Meanings, read_meanings
from paramcount.checkpoints.opening.sampling import have_same_samples
from paramcount.checkpoints.packed.quantised import Unpacked, as_decimal, unpack
from paramcount.checkpoints.verify import Comparison
from paramcount.counting.count import COMPONENTS, SCHEMA_VERSION
from paramcount.counting.tensors import locate_component

MOST_TABLES = 16  # embeddings and heads that are compared with the token embedding
DUPLICATE = "tied duplicate"

Shapes: TypeAlias = Mapping[str, Mapping[tuple[int, ...], int]]  # {what: {shape: how many tensors}}


class Pattern(NamedTuple):
    """Tensors that differ in their indices only and have the same type and shape."""

    pattern: str  # h.{0-11}.attn.c_attn.weight
    what: str  # component (of a fused tensor the first), or class if not a parameter
    dtype: str | None  # as stored
    shape: tuple[int, ...] | None  # as stored
    tensors: int
    parameters: int | None  # learned values after unpacking; None if only names are known


class Copy(NamedTuple):
    """An embedding or head with the shape of the token embedding."""

    name: str
    of: str
    same: bool | None  # whether sampled values are equal; None if values are not available or have another type
    values: int


@dataclass(frozen=True)
class StoredCount:
    """The contents of a checkpoint. Units: parameters, unless stated otherwise."""

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
    types: tuple[Type, ...]  # the most bytes first
    stacks: Mapping[str, int]  # {name prefix of a stack: number of layers}
    experts: int  # largest number in a layer
    copies: tuple[Copy, ...]
    faults: tuple[str, ...]  # contradictions between files, or with an index or the packing
    notes: tuple[str, ...]  # values that were not counted or checked; harmless
    patterns: tuple[Pattern, ...] = field(repr=False)
    shapes: Shapes = field(repr=False)  # by component, after unpacking

    @property
    def remarks(self) -> tuple[str, ...]:
        """An alias of `notes` until 0.3."""
        return self.notes

    def to_dict(self) -> dict[str, Any]:
        """The contents as plain data for JSON."""
        plain = (
            "path",
            "format",
            "files",
            "tensors",
            "whole",
            "total",
            "by",
            "untold",
            "scheme",
            "elements",
            "bytes",
            "experts",
        )
        rows = ("types", "copies", "patterns")
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in plain},
            "bits_per_value": as_decimal(self.bits),
            **{name: dict(getattr(self, name)) for name in ("components", "beside", "stacks")},
            **{name: list(getattr(self, name)) for name in ("zoo", "faults", "remarks")},
            "nearest": self.nearest and self.nearest._asdict(),
            **{name: [row._asdict() for row in getattr(self, name)] for name in rows},
        }


def summarize_checkpoint(checkpoint: Checkpoint) -> StoredCount:
    """The contents of a checkpoint."""
    content = unpack(checkpoint)
    meanings = read_meanings({name: logical.shape for name, logical in content.tensors.items()})
    found = identify(checkpoint, content, meanings)
    copies = find_copies(checkpoint, content, meanings)
    what = (
        classify_declared(found.compared)
        if found.compared
        else dict(meanings.what) | {copy.name: DUPLICATE for copy in copies if copy.same}
    )
    known = {name: prod(logical.shape) for name, logical in content.tensors.items() if logical.shape is not None}
    components, beside = sum_components(what, known, content, checkpoint)
    if found.verification and len(known) in (0, len(content.tensors)):  # which splits fused tensors by component
        components, beside = dict(found.verification.found), found.verification.beside
    patterns = build_patterns(checkpoint, content, what, known)
    return StoredCount(
        path=str(checkpoint.path),
        format=checkpoint.format,
        files=len(checkpoint.files),
        tensors=len(checkpoint.tensors),
        whole=checkpoint.has_all_shapes,
        total=sum(components.values()) if known or not content.tensors else None,
        components=components if known or not content.tensors else {},
        by="declaration" if found.verification else "names",
        untold=0 if found.compared else len(meanings.unrecognized),
        beside=beside,
        zoo=found.ids,
        nearest=found.nearest,
        scheme=content.scheme,
        elements=content.totals.elements,
        bytes=content.totals.bytes,
        bits=content.totals.bits,
        types=sum_dtypes(checkpoint),
        stacks=meanings.stacks,
        experts=meanings.experts,
        copies=copies,
        faults=(*checkpoint.faults, *content.faults),
        notes=(
            *(found.verification.notes if found.verification else checkpoint.remarks),
            *collect_notes(len(known), content, found.ids, patterns),
        ),
        patterns=patterns,
        shapes=count_shapes(what, content),
    )


def classify_declared(found: Comparison) -> dict[str, str]:
    """{tensor: its component in the model (of a fused tensor the first), or its class if it is not a parameter}"""
    tensors = dict(found.matches.matching) | dict(found.matches.by_shape)
    components = {
        tensor: locate_component(tensor.part, split_by_component(tensor)[0][0])[0] for tensor in tensors.values()
    }
    return {
        name: finding.what if (finding := found.findings.get(name)) else components[tensors[name]]
        for name in found.content.tensors
    }


def sum_components(
    what: Mapping[str, str], known: Mapping[str, int], content: Unpacked, checkpoint: Checkpoint
) -> tuple[dict[str, int], dict[str, int | None]]:
    """Learned values of each component, and all other values by class."""
    components, beside = dict.fromkeys(COMPONENTS, 0), Counter[str]()
    for name, n in known.items():
        if what[name] in components:
            components[what[name]] += n
        else:
            beside[what[name]] += n
    for name, packing_class in content.auxiliary.items():
        shape = checkpoint.tensors[name].shape
        if shape is not None:
            beside[packing_class] += prod(shape)
    return components, dict(beside)


def find_copies(checkpoint: Checkpoint, content: Unpacked, meanings: Meanings) -> tuple[Copy, ...]:
    """Embeddings and heads with the shape of the token embedding, and whether each is a copy of it."""
    tables = [name for name in meanings.tables if (shape := content.tensors[name].shape) and len(shape) == 2][
        :MOST_TABLES
    ]
    if not tables:
        return ()
    original, *candidates = tables
    shape = content.tensors[original].shape or ()
    candidates = [name for name in candidates if content.tensors[name].shape == shape]
    return tuple(
        Copy(name, original, are_copies(checkpoint, content, name, original), prod(shape)) for name in candidates
    )


def are_copies(checkpoint: Checkpoint, content: Unpacked, a: str, b: str) -> bool | None:
    """Whether sampled values of two tensors are equal; None if they cannot be compared."""
    one, other = content.tensors[a].list_file_names(a), content.tensors[b].list_file_names(b)
    if any(checkpoint.tensors[x].dtype != checkpoint.tensors[y].dtype for x, y in zip(one, other)) or len(one) != len(
        other
    ):
        return None
    found = [have_same_samples(checkpoint, x, y) for x, y in zip(one, other)]
    return False if False in found else None if None in found else True


def count_shapes(what: Mapping[str, str], content: Unpacked) -> dict[str, Counter[tuple[int, ...]]]:
    """{component or class: {shape: number of tensors}}"""
    found: dict[str, Counter[tuple[int, ...]]] = {}
    for name, logical in content.tensors.items():
        if logical.shape is not None:
            found.setdefault(what[name], Counter())[logical.shape] += 1
    return found


def build_patterns(
    checkpoint: Checkpoint, content: Unpacked, what: Mapping[str, str], known: Mapping[str, int]
) -> tuple[Pattern, ...]:
    """All tensors of the files, grouped by component, type, shape and pattern of names."""
    values = {logical.list_file_names(name)[0]: name for name, logical in content.tensors.items()}
    alike: dict[tuple[str, str | None, tuple[int, ...] | None], list[str]] = {}
    for name, tensor in checkpoint.tensors.items():
        component = what[values[name]] if name in values else content.auxiliary[name]
        alike.setdefault((component, tensor.dtype, tensor.shape), []).append(name)
    return tuple(
        Pattern(
            pattern,
            component,
            dtype,
            shape,
            len(names),
            count_parameters((values[name] for name in names if name in values), component, known),
        )
        for (component, dtype, shape), all_names in alike.items()
        for pattern, names in fold_names(all_names)
    )


def count_parameters(names: Iterable[str], what: str, known: Mapping[str, int]) -> int | None:
    """Parameters in tensors of the component or class `what`, after unpacking."""
    if what not in COMPONENTS:
        return 0
    sizes = [known.get(name) for name in names]
    return None if None in sizes else sum(size or 0 for size in sizes)


def collect_notes(known: int, content: Unpacked, ids: Sequence[str], patterns: Iterable[Pattern]) -> list[str]:
    """Notes on tensors that were not counted and on adapters. `ids`: zoo models in the file."""
    lines, n_tensors = [], len(content.tensors)
    if known < n_tensors:
        lines.append(
            f"{f'{n_tensors - known:,} of {n_tensors:,} tensors have' if known else 'all tensors have'} unknown shapes and are not counted"
        )
    if not ids and (
        n := sum(
            pattern.tensors for pattern in patterns if classify_tensor(pattern.pattern, pattern.shape) == "adapter"
        )
    ):
        lines.append(f"{n:,} tensors belong to an adapter; its base model is not in this checkpoint")
    return lines

"""A checkpoint without a model: how many parameters it stores, of which component, what stands beside them, and of which models it may be."""

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

MOST_TABLES = 16  # that are compared with the token table
DUPLICATE = "tied duplicate"

Shapes: TypeAlias = Mapping[str, Mapping[tuple[int, ...], int]]  # {what: {shape: how many tensors}}


class Pattern(NamedTuple):
    """Tensors of one pattern that are stored alike."""

    pattern: str  # h.{0-11}.attn.c_attn.weight
    what: str  # a component, of a fused tensor the first, or what it is beside the parameters
    dtype: str | None  # as stored
    shape: tuple[int, ...] | None  # as stored
    tensors: int
    parameters: int | None  # learned values behind all of them, each once; None where only names are known


class Copy(NamedTuple):
    """A table or head of the token table's shape."""

    name: str
    of: str
    same: bool | None  # whether samples of both are equal; None where the values are not there, or stored in another type
    values: int


@dataclass(frozen=True)
class StoredCount:
    """What a checkpoint stores. Units: parameters, where nothing else is said."""

    path: str
    format: str  # safetensors | gguf | pytorch
    files: int
    tensors: int
    whole: bool  # whether every tensor's shape is known
    total: int | None  # learned values, each once, without MTP layers; None where only names are known
    components: Mapping[str, int]  # every name of COMPONENTS; sums to total. Empty where only names are known
    by: str  # names | declaration: what told the components
    untold: int  # tensors of which no name told the component: they are in `other`
    beside: Mapping[str, int | None]  # values beside the parameters, by what they are: buffers, scales, copies, MTP layers
    zoo: tuple[str, ...]  # ids of all models whose declaration the file holds
    nearest: Nearest | None  # where it holds none
    scheme: str | None  # how the file is quantised
    elements: int | None  # as stored: packed words and scales, too
    bytes: int | None
    bits: Fraction | None  # bits of a value
    types: tuple[Type, ...]  # the most bytes first
    stacks: Mapping[str, int]  # {beginning of the names of a stack of layers: how many}
    experts: int  # in a layer, at most
    copies: tuple[Copy, ...]
    faults: tuple[str, ...]  # how the files contradict each other, an index, or the way they are packed
    notes: tuple[str, ...]  # what was not counted or not checked; harmless
    patterns: tuple[Pattern, ...] = field(repr=False)
    shapes: Shapes = field(repr=False)  # by name, unpacked

    @property
    def remarks(self) -> tuple[str, ...]:
        """An alias of `notes` until 0.3."""
        return self.notes

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        plain = ("path", "format", "files", "tensors", "whole", "total", "by", "untold", "scheme", "elements", "bytes", "experts")
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
    """What an opened checkpoint stores."""
    content = unpack(checkpoint)
    told = read_meanings({name: logical.shape for name, logical in content.tensors.items()})
    found = identify(checkpoint, content, told)
    copies = find_copies(checkpoint, content, told)
    what = classify_declared(found.compared) if found.compared else dict(told.what) | {copy.name: DUPLICATE for copy in copies if copy.same}
    known = {name: prod(logical.shape) for name, logical in content.tensors.items() if logical.shape is not None}
    components, beside = sum_components(what, known, content, checkpoint)
    if found.verification and len(known) in (0, len(content.tensors)):  # which knows of fused tensors how much is of which component
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
        untold=0 if found.compared else len(told.untold),
        beside=beside,
        zoo=found.ids,
        nearest=found.nearest,
        scheme=content.scheme,
        elements=content.totals.elements,
        bytes=content.totals.bytes,
        bits=content.totals.bits,
        types=sum_dtypes(checkpoint),
        stacks=told.stacks,
        experts=told.experts,
        copies=copies,
        faults=(*checkpoint.faults, *content.faults),
        notes=(*(found.verification.notes if found.verification else checkpoint.remarks), *remarks(len(known), content, found.ids, patterns)),
        patterns=patterns,
        shapes=count_shapes(what, content),
    )


def classify_declared(found: Comparison) -> dict[str, str]:
    """What the declaration says of every tensor: its component, of a fused one the first, or what it is beside the parameters."""
    tensors = dict(found.matches.there) | dict(found.matches.by_shape)
    components = {tensor: locate_component(tensor.part, split_by_component(tensor)[0][0])[0] for tensor in tensors.values()}
    return {name: said.what if (said := found.findings.get(name)) else components[tensors[name]] for name in found.content.tensors}


def sum_components(
    what: Mapping[str, str], known: Mapping[str, int], content: Unpacked, checkpoint: Checkpoint
) -> tuple[dict[str, int], dict[str, int | None]]:
    """Learned values of each component, and values beside them, by what they are."""
    components, beside = dict.fromkeys(COMPONENTS, 0), Counter[str]()
    for name, n in known.items():
        if what[name] in components:
            components[what[name]] += n
        else:
            beside[what[name]] += n
    for name, thing in content.beside.items():
        shape = checkpoint.tensors[name].shape
        if shape is not None:
            beside[thing] += prod(shape)
    return components, dict(beside)


def find_copies(checkpoint: Checkpoint, content: Unpacked, told: Meanings) -> tuple[Copy, ...]:
    """Tables and heads of the token table's shape, each with whether it is a copy of it."""
    tables = [name for name in told.tables if (shape := content.tensors[name].shape) and len(shape) == 2][:MOST_TABLES]
    if not tables:
        return ()
    first, *others = tables
    shape = content.tensors[first].shape or ()
    return tuple(Copy(name, first, are_copies(checkpoint, content, name, first), prod(shape)) for name in others if content.tensors[name].shape == shape)


def are_copies(checkpoint: Checkpoint, content: Unpacked, a: str, b: str) -> bool | None:
    """Whether samples of two tensors are equal; None where nobody can tell."""
    one, other = content.tensors[a].names_in_file(a), content.tensors[b].names_in_file(b)
    if any(checkpoint.tensors[x].dtype != checkpoint.tensors[y].dtype for x, y in zip(one, other)) or len(one) != len(other):
        return None
    found = [have_same_samples(checkpoint, x, y) for x, y in zip(one, other)]
    return False if False in found else None if None in found else True


def count_shapes(what: Mapping[str, str], content: Unpacked) -> dict[str, Counter[tuple[int, ...]]]:
    """How many tensors of each shape each component has."""
    found: dict[str, Counter[tuple[int, ...]]] = {}
    for name, logical in content.tensors.items():
        if logical.shape is not None:
            found.setdefault(what[name], Counter())[logical.shape] += 1
    return found


def build_patterns(checkpoint: Checkpoint, content: Unpacked, what: Mapping[str, str], known: Mapping[str, int]) -> tuple[Pattern, ...]:
    """Every tensor of the files, those together that are stored alike and differ in indices alone."""
    values = {logical.names_in_file(name)[0]: name for name, logical in content.tensors.items()}
    alike: dict[tuple[str, str | None, tuple[int, ...] | None], list[str]] = {}
    for name, held in checkpoint.tensors.items():
        thing = what[values[name]] if name in values else content.beside[name]
        alike.setdefault((thing, held.dtype, held.shape), []).append(name)
    return tuple(
        Pattern(pattern, thing, dtype, shape, len(names), count_parameters((values[name] for name in names if name in values), thing, known))
        for (thing, dtype, shape), all_names in alike.items()
        for pattern, names in fold_names(all_names)
    )


def count_parameters(names: Iterable[str], what: str, known: Mapping[str, int]) -> int | None:
    """Parameters behind tensors, which are `what`."""
    if what not in COMPONENTS:
        return 0
    sizes = [known.get(name) for name in names]
    return None if None in sizes else sum(size or 0 for size in sizes)


def remarks(known: int, content: Unpacked, ids: Sequence[str], patterns: Iterable[Pattern]) -> list[str]:
    """What of the tensors was not counted, and what is no model by itself. `ids`: of the models that it holds."""
    lines, all = [], len(content.tensors)
    if known < all:
        lines.append(f"{f'{all - known:,} of {all:,} tensors have' if known else 'all tensors have'} unknown shapes and are not counted")
    if not ids and (n := sum(pattern.tensors for pattern in patterns if classify_tensor(pattern.pattern, pattern.shape) == "adapter")):
        lines.append(f"{n:,} tensors belong to an adapter; its base model is not in this checkpoint")
    return lines

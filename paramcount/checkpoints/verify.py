"""Whether a checkpoint holds the model that its config promises: per component, tensor by tensor, and in bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.findings import Finding, Line, collect_findings, fold_findings, sum_values
from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.index_sizes import explain_total_size
from paramcount.checkpoints.matching import Matches, expand_names, is_counted, match_tensors, split_by_component
from paramcount.checkpoints.packed.quantised import Totals, Unpacked, unpack
from paramcount.checkpoints.writers.layouts import apply_layout
from paramcount.counting.count import COMPONENTS, SCHEMA_VERSION, Count
from paramcount.counting.tensors import Tensor, locate_component
from paramcount.errors import ParamcountError, make_printable
from paramcount.zoo import Model, count_model


class Size(NamedTuple):
    """Bytes of a checkpoint's values."""

    predicted: int | None  # of the declared tensors, each stored as this file stores it or its like; None where nobody can tell
    found: int | None  # None where neither a header nor an index says


@dataclass(frozen=True)
class Verification:
    """A model against a checkpoint."""

    id: str
    name: str
    path: str
    format: str  # safetensors | gguf | pytorch
    files: int
    tensors: int  # in all files
    expected: Mapping[str, int]  # parameters of each component, every name of COMPONENTS
    found: Mapping[str, int]
    lines: tuple[Line, ...]  # of tensors that are not simply there
    faults: tuple[str, ...]  # how the files contradict each other, an index, or the way they are packed
    notes: tuple[str, ...]  # what was not checked, or matched in an unusual way; harmless
    size: Size
    totals: Totals
    scheme: str | None  # how the file is quantised
    shapes_checked: bool  # all of them; not where a file is not there
    only_names: bool  # no shape is known: an index says no more than names, and `found` is what they stand for
    by_shape: int  # tensors whose names are strange and that were matched by their shape alone

    @property
    def remarks(self) -> tuple[str, ...]:
        """An alias of `notes` until 0.3."""
        return self.notes

    @property
    def problems(self) -> int:
        """The number of problems: contradictions between files, and groups of tensors that do not match."""
        return len(self.faults) + sum(not line.finding.ok for line in self.lines)

    @property
    def ok(self) -> bool:
        """Whether the checkpoint is complete: every tensor matches."""
        return not self.problems

    @property
    def summary(self) -> str:
        """The result in words: complete, or how many problems there are."""
        if self.ok:
            return f"complete: every tensor{' name' if self.only_names else ''} matches"
        return f"{self.problems:,} problem{'s' if self.problems > 1 else ''}"

    @property
    def beside(self) -> dict[str, int | None]:
        """Values beside the parameters that are accounted for, by what they are."""
        return sum_values(line for line in self.lines if line.finding.ok)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        plain = ("id", "name", "path", "format", "ok", "files", "tensors", "scheme", "shapes_checked", "only_names", "by_shape", "beside", "faults", "remarks")
        lines = [line.to_dict() for line in self.lines]
        counts = {"expected": dict(self.expected), "found": dict(self.found)}
        totals = {f"{name}_total": sum(components.values()) for name, components in counts.items()}
        sizes = {"size": self.size._asdict(), "totals": self.totals.to_dict()}
        return {"schema_version": SCHEMA_VERSION} | {name: getattr(self, name) for name in plain} | counts | totals | sizes | {"lines": lines}


@dataclass(frozen=True)
class Comparison:
    """A model's declaration beside what a checkpoint holds, tensor by tensor."""

    checkpoint: Checkpoint
    count: Count
    content: Unpacked
    tensors: Sequence[Tensor]  # as the checkpoint's writer names and shapes them
    matches: Matches
    findings: Mapping[str, Finding]  # of names that are not simply there
    remarks: tuple[str, ...]


def compare_tensors(model: Model, checkpoint: Checkpoint, content: Unpacked | None = None) -> Comparison:
    """A loaded model and an opened checkpoint, each tensor matched. `content`: the checkpoint without its packing, where that is known."""
    count, content = count_model(model), content or unpack(checkpoint)
    tensors, remarks = format_pattern(checkpoint, content, count)
    try:
        declared = expand_names(tensors)
    except ParamcountError as error:
        raise error.add_location(make_printable(model.id)) from None
    matches = match_tensors(declared, content.tensors, count.sizes.not_saved)
    remarks += [f"{make_printable(name)} is not in the file; the reference recomputes it" for name in matches.absent if name.endswith(count.sizes.not_saved)]
    return Comparison(checkpoint, count, content, tensors, matches, collect_findings(matches, checkpoint, content, count), tuple(remarks))


def verify_checkpoint(model: Model, checkpoint: Checkpoint) -> Verification:
    """A loaded model against an opened checkpoint."""
    return build_verification(model, compare_tensors(model, checkpoint))


def build_verification(model: Model, found: Comparison) -> Verification:
    """What is to be said of a model beside a checkpoint."""
    checkpoint, content, matches = found.checkpoint, found.content, found.matches
    size = Size(predict_bytes(found), count_bytes(checkpoint))
    faults, remarks = [*checkpoint.faults, *content.faults], [*found.remarks]
    if matches.by_shape:
        remarks.append(f"unfamiliar names: matched {len(matches.by_shape):,} tensors by shape alone")
    if checkpoint.has_only_names:
        try:
            remarks.append(explain_total_size(matches, content, checkpoint))
        except ParamcountError as error:
            faults.append(str(error))
    return Verification(
        id=model.id,
        name=model.name,
        path=str(checkpoint.path),
        format=checkpoint.format,
        files=len(checkpoint.files),
        tensors=len(checkpoint.tensors),
        expected=sum_declared(found.tensors),
        found=sum_found(found),
        lines=fold_findings(found.findings),
        faults=tuple(faults),
        notes=(*checkpoint.remarks, *filter(None, remarks)),
        size=size,
        totals=content.totals,
        scheme=content.scheme,
        shapes_checked=checkpoint.has_all_shapes,
        only_names=checkpoint.has_only_names,
        by_shape=len(matches.by_shape),
    )


def format_pattern(checkpoint: Checkpoint, content: Unpacked, count: Count) -> tuple[Sequence[Tensor], list[str]]:
    """The declared tensors as this checkpoint's writer names and shapes them, and what is to be said of it."""
    if checkpoint.format != "gguf":
        return apply_layout(count.tensors, content.tensors, count.sizes.transposable)
    from paramcount.checkpoints.writers.gguf_names import find_omitted, gguf_tensors, rows_left_out

    parts = find_omitted(count.tensors)
    remarks = [f"not checked: {', '.join(parts)} (in a separate mmproj file)"] if parts else []
    try:
        tensors = gguf_tensors(count.tensors, content.tensors, checkpoint.metadata.get("general.architecture"), count)
    except ParamcountError as error:
        raise error.add_location(make_printable(checkpoint.path)) from None
    return tensors, remarks + rows_left_out(count.tensors, tensors)


def sum_declared(tensors: Sequence[Tensor]) -> dict[str, int]:
    """Parameters that the declaration has of each component."""
    found = dict.fromkeys(COMPONENTS, 0)
    for tensor in tensors:
        if is_counted(tensor):
            for component, n in split_by_component(tensor):
                found[locate_component(tensor.part, component)[0]] += n * tensor.copies
    return found


def sum_found(found: Comparison) -> dict[str, int]:
    """Parameters that the files hold of each component; where no shape is known, those of the tensors that are named."""
    sums = dict.fromkeys(COMPONENTS, 0)
    matches, held, only_names = found.matches, found.content.tensors, found.checkpoint.has_only_names
    there = {**matches.there, **matches.by_shape}
    copies = Counter(tensor for name, tensor in there.items() if only_names or held[name].shape is not None)
    for tensor, times in copies.items():
        if is_counted(tensor):
            for component, n in split_by_component(tensor):
                sums[locate_component(tensor.part, component)[0]] += n * times
    for name, tensor in matches.misshapen.items():
        if is_counted(tensor):
            sums[locate_component(tensor.part, tensor.component)[0]] += prod(held[name].shape or ())
    return sums


def predict_bytes(found: Comparison) -> int | None:
    """Bytes of what is declared and not left out, each tensor packed as the file packs it, else as it packs its like; and of what else the
    file may hold."""
    matches, held = found.matches, found.content.tensors
    sizes = [held[name].size(tensor.shape) for tensors in (matches.there, matches.misshapen, matches.by_shape) for name, tensor in tensors.items()]
    sizes += [held[name].size(shape) for name in matches.unexpected if found.findings[name].ok and (shape := held[name].shape) is not None]
    if matches.missing:
        like = {strip_indices(name): logical for name, logical in held.items()}
        usual = max(like.values(), key=lambda logical: prod(logical.shape or ()), default=None)
        for name, tensor in matches.missing.items():
            kept = like.get(strip_indices(name)) or usual
            sizes.append(kept.size(tensor.shape) if kept else None)
    return None if None in sizes else sum(size or 0 for size in sizes)


def count_bytes(checkpoint: Checkpoint) -> int | None:
    """Bytes of all values: as the headers say, else as an index does."""
    sizes = [held.size for held in checkpoint.tensors.values()]
    return checkpoint.total_size if None in sizes else sum(size or 0 for size in sizes)

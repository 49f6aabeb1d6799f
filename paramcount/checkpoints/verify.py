"""Whether a checkpoint contains a model: by component, tensor by tensor, and in bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.findings import Finding, Line, collect_findings, fold_findings, sum_values
from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.index_sizes import explain_total_size
from paramcount.checkpoints.matching import Matches, expand_names, match_tensors
from paramcount.checkpoints.packed.quantised import Totals, Unpacked, unpack
from paramcount.checkpoints.writers.layouts import apply_layout
from paramcount.counting.components import COMPONENTS, locate_component
from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.errors import ParamcountError, make_printable
from paramcount.flow import TensorRow
from paramcount.zoo import Model, count_model


class Size(NamedTuple):
    """Bytes of a checkpoint's values."""

    predicted: int | None  # of the model's tensors, packed as in this file; None if unknown
    found: int | None  # None if neither headers nor an index say


@dataclass(frozen=True)
class Verification:
    """The result of checking a checkpoint against a model."""

    id: str
    name: str
    path: str
    format: str  # safetensors | gguf | pytorch
    files: int
    tensors: int  # in all files
    expected: Mapping[str, int]  # parameters of each component, every name of COMPONENTS
    found: Mapping[str, int]
    lines: tuple[Line, ...]  # tensors that do not simply match
    faults: tuple[str, ...]  # contradictions between files, or with an index or the packing
    notes: tuple[str, ...]  # what was not checked, or how unusual names matched; harmless
    size: Size
    totals: Totals
    scheme: str | None  # quantisation of the file
    shapes_checked: bool  # whether the shapes of all tensors were checked
    only_names: bool  # whether no shape is known; `found` then counts what the index names
    by_shape: int  # tensors with unfamiliar names that were matched by shape alone

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
        """Values outside the total that match, by class."""
        return sum_values(line for line in self.lines if line.finding.ok)

    def to_dict(self) -> dict[str, Any]:
        """The verification as plain data for JSON."""
        names = "id name path format ok files tensors scheme shapes_checked only_names by_shape beside faults remarks"
        counts = {"expected": dict(self.expected), "found": dict(self.found)}
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in names.split()},
            **counts,
            **{f"{name}_total": sum(components.values()) for name, components in counts.items()},
            "size": self.size._asdict(),
            "totals": self.totals.to_dict(),
            "lines": [line.to_dict() for line in self.lines],
        }


@dataclass(frozen=True)
class Comparison:
    """The tensors of a model matched with those of a checkpoint."""

    checkpoint: Checkpoint
    count: Count
    content: Unpacked
    tensors: Sequence[TensorRow]  # of the model, as the checkpoint's writer names and shapes them
    matches: Matches
    findings: Mapping[str, Finding]  # {name: finding} for tensors that do not simply match
    notes: tuple[str, ...]


def compare_tensors(model: Model, checkpoint: Checkpoint, content: Unpacked | None = None) -> Comparison:
    """Match the tensors of a model and a checkpoint. `content`: the unpacked checkpoint, if already available."""
    count, content = count_model(model), content or unpack(checkpoint)
    tensors, notes = apply_writer_layout(checkpoint, content, count)
    try:
        declared = expand_names(tensors)
    except ParamcountError as error:
        raise error.add_location(make_printable(model.id)) from None
    matches = match_tensors(declared, content.tensors, count.sizes.not_saved)
    for name in matches.optional:
        if name.endswith(count.sizes.not_saved):
            notes.append(f"{make_printable(name)} is not in the file; the reference recomputes it")
    findings = collect_findings(matches, checkpoint, content, count)
    return Comparison(checkpoint, count, content, tensors, matches, findings, tuple(notes))


def verify_checkpoint(model: Model, checkpoint: Checkpoint) -> Verification:
    """Check a checkpoint against a model."""
    return build_verification(model, compare_tensors(model, checkpoint))


def build_verification(model: Model, comparison: Comparison) -> Verification:
    """The verification for a comparison of a model and a checkpoint."""
    checkpoint, content, matches = comparison.checkpoint, comparison.content, comparison.matches
    faults, notes = [*checkpoint.faults, *content.faults], [*comparison.notes]
    if matches.by_shape:
        notes.append(f"unfamiliar names: matched {len(matches.by_shape):,} tensors by shape alone")
    if checkpoint.has_only_names:
        try:
            notes.append(explain_total_size(matches, content, checkpoint))
        except ParamcountError as error:
            faults.append(str(error))
    return Verification(
        id=model.id,
        name=model.name,
        path=str(checkpoint.path),
        format=checkpoint.format,
        files=len(checkpoint.files),
        tensors=len(checkpoint.tensors),
        expected=sum_declared(comparison.tensors),
        found=sum_matched(comparison),
        lines=fold_findings(comparison.findings),
        faults=tuple(faults),
        notes=(*checkpoint.notes, *filter(None, notes)),
        size=Size(predict_bytes(comparison), count_bytes(checkpoint)),
        totals=content.totals,
        scheme=content.scheme,
        shapes_checked=checkpoint.has_all_shapes,
        only_names=checkpoint.has_only_names,
        by_shape=len(matches.by_shape),
    )


def apply_writer_layout(
    checkpoint: Checkpoint, content: Unpacked, count: Count
) -> tuple[Sequence[TensorRow], list[str]]:
    """The model's tensors as this checkpoint's writer names and shapes them, and notes."""
    if checkpoint.format != "gguf":
        return apply_layout(count.tensors, content.tensors, count.sizes.transposable)
    from paramcount.checkpoints.writers.gguf_names import describe_dropped_padding, list_gguf_tensors, list_mmproj_parts

    parts = list_mmproj_parts(count.tensors)
    notes = [f"not checked: {', '.join(parts)} (in a separate mmproj file)"] if parts else []
    architecture = checkpoint.metadata.get("general.architecture")
    try:
        tensors = list_gguf_tensors(count.tensors, content.tensors, architecture, count)
    except ParamcountError as error:
        raise error.add_location(make_printable(checkpoint.path)) from None
    return tensors, notes + describe_dropped_padding(count.tensors, tensors)


def sum_declared(tensors: Iterable[TensorRow]) -> dict[str, int]:
    """{component: parameters in the model}"""
    sums = dict.fromkeys(COMPONENTS, 0)
    for tensor in tensors:
        add_components(sums, tensor, tensor.copies)
    return sums


def sum_matched(comparison: Comparison) -> dict[str, int]:
    """{component: parameters in the files}; if no shape is known, those of the named tensors."""
    sums = dict.fromkeys(COMPONENTS, 0)
    matches, file_tensors = comparison.matches, comparison.content.tensors
    only_names = comparison.checkpoint.has_only_names
    matching = {**matches.matching, **matches.by_shape}
    copies = Counter(tensor for name, tensor in matching.items() if only_names or file_tensors[name].shape is not None)
    for tensor, n in copies.items():
        add_components(sums, tensor, n)
    for name, tensor in matches.wrong_shape.items():
        if tensor.is_counted:
            sums[locate_component(tensor.part, tensor.component)[0]] += prod(file_tensors[name].shape or ())
    return sums


def add_components(sums: dict[str, int], tensor: TensorRow, copies: int) -> None:
    """Add the values of copies of a tensor to the sums of its components, if they are in the total."""
    if tensor.is_counted:
        matrices = tensor.stacked.count if tensor.stacked else 1
        for component, n in tensor.shares:
            sums[locate_component(tensor.part, component)[0]] += n * matrices * copies


def predict_bytes(comparison: Comparison) -> int | None:
    """Bytes of the model's tensors and of expected extra ones; None if unknown.

    Each tensor is packed as in the file; a missing one is packed like similar tensors.
    """
    matches, file_tensors = comparison.matches, comparison.content.tensors
    sizes = [
        file_tensors[name].compute_size(tensor.shape)
        for tensors in (matches.matching, matches.wrong_shape, matches.by_shape)
        for name, tensor in tensors.items()
    ]
    for name in matches.unexpected:
        shape = file_tensors[name].shape
        if comparison.findings[name].ok and shape is not None:
            sizes.append(file_tensors[name].compute_size(shape))
    if matches.missing:
        by_pattern = {strip_indices(name): logical for name, logical in file_tensors.items()}
        largest = max(by_pattern.values(), key=lambda logical: prod(logical.shape or ()), default=None)
        for name, tensor in matches.missing.items():
            similar = by_pattern.get(strip_indices(name)) or largest
            sizes.append(similar.compute_size(tensor.shape) if similar else None)
    return None if None in sizes else sum(size or 0 for size in sizes)


def count_bytes(checkpoint: Checkpoint) -> int | None:
    """Bytes of all values according to the headers, or to an index; None if unknown."""
    sizes = [tensor.size for tensor in checkpoint.tensors.values()]
    return checkpoint.total_size if None in sizes else sum(size or 0 for size in sizes)

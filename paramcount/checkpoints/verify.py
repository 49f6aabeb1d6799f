"""Whether a checkpoint contains a model: by component, tensor by tensor, and in bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.findings import Finding, FindingLine, collect_findings, fold_findings, sum_values
from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.index_sizes import explain_total_size
from paramcount.checkpoints.matching import Matches, expand_names, match_tensors
from paramcount.checkpoints.packed.quantised import Totals, Unpacked, unpack
from paramcount.checkpoints.writers.layouts import apply_layout
from paramcount.counting.components import COMPONENTS
from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.counting.results import JsonResult, alias
from paramcount.errors import ParamcountError, locate_errors, make_printable
from paramcount.flow import TensorRow
from paramcount.zoo import Model, count_model


class ByteCount(NamedTuple):
    """Bytes of a checkpoint's values."""

    predicted: int | None  # of the model's tensors, packed as in this file; None if unknown
    found: int | None  # None if neither headers nor an index say


@dataclass(frozen=True, repr=False)
class Verification(JsonResult):
    """The tensors of a model matched with those of a checkpoint: whether the checkpoint contains the model."""

    shown = ("model", "format", "files", "tensors", "ok")
    html_table = "paramcount.checkpoints.render_verification:build_table"

    model: Model
    checkpoint: Checkpoint
    count: Count
    content: Unpacked
    rows: Sequence[TensorRow]  # of the model, as the checkpoint's writer names and shapes them
    matches: Matches
    findings: Mapping[str, Finding]  # {name: finding} for tensors that do not simply match
    layout_notes: tuple[str, ...]  # about how the writer names them

    @property
    def format(self) -> str:
        """One of safetensors, gguf and pytorch."""
        return self.checkpoint.format

    @property
    def files(self) -> int:
        return len(self.checkpoint.files)

    @property
    def tensors(self) -> int:
        """The number of tensors in all files."""
        return len(self.checkpoint.tensors)

    @cached_property
    def expected(self) -> Mapping[str, int]:
        """The parameters of each component, every name of COMPONENTS."""
        return sum_rows((row, row.copies) for row in self.rows)

    @cached_property
    def found(self) -> Mapping[str, int]:
        """The same in the files; if no shape is known, those that the index names."""
        matches, tensors = self.matches, self.content.tensors
        matching = {**matches.matching, **matches.by_shape}.items()
        sums = sum_rows(
            Counter(row for name, row in matching if self.only_names or tensors[name].shape is not None).items()
        )
        for name, row in matches.wrong_shape.items():
            if row.is_counted:
                sums[row.main_component] += prod(tensors[name].shape or ())
        return sums

    @cached_property
    def lines(self) -> tuple[FindingLine, ...]:
        """The tensors that do not simply match."""
        return fold_findings(self.findings)

    @cached_property
    def total_size(self) -> tuple[str, str]:
        """(note, fault) about the total_size of an index without shards; empty if there is none."""
        if not self.only_names:
            return "", ""
        try:
            return explain_total_size(self.matches, self.content, self.checkpoint), ""
        except ParamcountError as error:
            return "", str(error)

    @property
    def faults(self) -> tuple[str, ...]:
        """Contradictions between files, or with an index or the packing."""
        return (*self.checkpoint.faults, *self.content.faults, *filter(None, [self.total_size[1]]))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not checked, or how unusual names matched; harmless."""
        by_shape = f"unfamiliar names: matched {self.by_shape:,} tensors by shape alone" if self.by_shape else ""
        return (*self.checkpoint.notes, *filter(None, (*self.layout_notes, by_shape, self.total_size[0])))

    remarks = alias("notes")

    @cached_property
    def size(self) -> ByteCount:
        return ByteCount(predict_bytes(self), count_bytes(self.checkpoint))

    @property
    def totals(self) -> Totals:
        return self.content.totals

    @property
    def scheme(self) -> str | None:
        """The quantisation of the file."""
        return self.content.scheme

    @property
    def shapes_checked(self) -> bool:
        """Whether the shapes of all tensors were checked."""
        return self.checkpoint.has_all_shapes

    @property
    def only_names(self) -> bool:
        """Whether no shape is known; `found` then counts what the index names."""
        return self.checkpoint.has_only_names

    @property
    def by_shape(self) -> int:
        """The number of tensors with unfamiliar names that were matched by shape alone."""
        return len(self.matches.by_shape)

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
        names = "format ok files tensors scheme shapes_checked only_names by_shape beside faults remarks"
        counts = {"expected": dict(self.expected), "found": dict(self.found)}
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.model.id,
            "name": self.model.name,
            "path": str(self.checkpoint.path),
            **{name: getattr(self, name) for name in names.split()},
            **counts,
            **{f"{name}_total": sum(components.values()) for name, components in counts.items()},
            "size": self.size._asdict(),
            "totals": self.totals.to_dict(),
            "lines": [line.to_dict() for line in self.lines],
        }


def verify_checkpoint(model: Model, checkpoint: Checkpoint, content: Unpacked | None = None) -> Verification:
    """Check a checkpoint against a model. `content`: the unpacked checkpoint, if already available."""
    count, content = count_model(model), content or unpack(checkpoint)
    rows, notes = apply_writer_layout(checkpoint, content, count)
    with locate_errors(model.id):
        declared = expand_names(rows)
    matches = match_tensors(declared, content.tensors, count.sizes.not_saved)
    for name in matches.optional:
        if name.endswith(count.sizes.not_saved):
            notes.append(f"{make_printable(name)} is not in the file; the reference recomputes it")
    findings = collect_findings(matches, checkpoint, content, count)
    return Verification(model, checkpoint, count, content, rows, matches, findings, tuple(notes))


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
    with locate_errors(checkpoint.path):
        tensors = list_gguf_tensors(count.tensors, content.tensors, architecture, count)
    return tensors, notes + describe_dropped_padding(count.tensors, tensors)


def sum_rows(copies: Iterable[tuple[TensorRow, int]]) -> dict[str, int]:
    """{component: parameters} of so many copies of each tensor, as far as the total includes them."""
    sums = dict.fromkeys(COMPONENTS, 0)
    for row, n in copies:
        if row.is_counted:
            for share in row.split():
                sums[share.main_component] += n * prod(share.shape)
    return sums


def predict_bytes(verification: Verification) -> int | None:
    """Bytes of the model's tensors and of expected extra ones; None if unknown.

    Each tensor is packed as in the file; a missing one is packed like similar tensors.
    """
    matches, file_tensors = verification.matches, verification.content.tensors
    sizes = [
        file_tensors[name].compute_size(tensor.shape)
        for tensors in (matches.matching, matches.wrong_shape, matches.by_shape)
        for name, tensor in tensors.items()
    ]
    for name in matches.unexpected:
        shape = file_tensors[name].shape
        if verification.findings[name].ok and shape is not None:
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

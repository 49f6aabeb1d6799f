"""Tensors that do not simply match: missing, with a wrong shape, unexpected, or outside the total; folded by pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.classify import HARMLESS, NOT_COUNTED, classify_tensor
from paramcount.checkpoints.folding import fold_names, strip_indices
from paramcount.checkpoints.matching import Matches, expand_names, find_renamed, is_counted
from paramcount.checkpoints.opening.sampling import have_same_samples
from paramcount.checkpoints.packed.quantised import Unpacked
from paramcount.counting.count import Count
from paramcount.counting.tensors import Tensor, list_unreachable

COPIES = {
    "encoder.embed_tokens.weight": "shared.weight"
}  # of the embedding shared by T5's encoder and decoder, in older files
BIAS_OF_PACKED = "zero bias of packed weights"


Shape: TypeAlias = tuple[int, ...]


class Finding(NamedTuple):
    """The result of checking a tensor; equal for all tensors of the same kind."""

    kind: str  # missing | wrong shape | differs | unexpected | beside
    what: (
        str  # component if missing or wrong shape; else the class: tied duplicate, buffer, MTP layer, scale, unknown …
    )
    declared_shape: Shape | None = None
    file_shape: Shape | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the finding is harmless."""
        return self.kind == "beside"

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data for JSON."""
        return {
            "finding": self.kind,
            "what": self.what,
            "declared": self.declared_shape,
            "held": self.file_shape,
            "note": self.note,
        }


class Line(NamedTuple):
    """Tensors of one pattern with the same finding."""

    finding: Finding
    pattern: str  # model.layers.{0-31}.self_attn.q_proj.weight
    tensors: int
    values: int | None  # in all of them, as stored unless missing; None if only names are known

    def to_dict(self) -> dict[str, Any]:
        """The line as plain data for JSON."""
        own = {"pattern": self.pattern, "tensors": self.tensors, "values": self.values, "ok": self.finding.ok}
        return self.finding.to_dict() | own


def collect_findings(matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count) -> dict[str, Finding]:
    """{name in the file: finding} for every tensor that does not simply match."""
    return dict((*_find_problems(matches, checkpoint, content, count), *_find_extras(matches, checkpoint, content)))


def fold_findings(findings: Mapping[str, Finding]) -> tuple[Line, ...]:
    """Findings folded by pattern of names, problems first."""
    found: dict[Finding, list[str]] = {}
    for name, finding in findings.items():
        found.setdefault(finding, []).append(name)
    lines = []
    for finding, alike in found.items():
        shape = finding.declared_shape if finding.file_shape is None else finding.file_shape
        for pattern, names in fold_names(alike):
            lines.append(Line(finding, pattern, len(names), None if shape is None else prod(shape) * len(names)))
    return tuple(sorted(lines, key=lambda line: line.finding.ok))


def _find_problems(
    matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count
) -> Iterator[tuple[str, Finding]]:
    file_tensors = content.tensors
    for name, tensor in matches.missing.items():
        yield name, Finding("missing", describe_role(tensor), tensor.shape)
    for name, tensor in matches.wrong_shape.items():
        yield name, Finding("wrong shape", describe_role(tensor), tensor.shape, file_tensors[name].shape)
    likely = find_renamed(matches, file_tensors)
    unreachable = _unreachable_shapes(count) if matches.unexpected else {}
    for name in matches.unexpected:
        finding = _classify_unexpected(name, matches, checkpoint, content, count, unreachable)
        yield (
            name,
            finding._replace(note=f"same shape as the missing {likely[name]}")
            if name in likely and not finding.ok
            else finding,
        )


def _unreachable_shapes(count: Count) -> dict[str, tuple[int, ...]]:
    """{name, with and without the model's own prefix: shape} of tensors that the reference allocates but never uses."""
    found = {
        name: tensor.shape
        for name, tensor in expand_names(tensor for tensor, _ in list_unreachable(count.sizes, count.head)).items()
    }
    return {name.partition(".")[2]: shape for name, shape in found.items()} | found


def _classify_unexpected(
    name: str,
    matches: Matches,
    checkpoint: Checkpoint,
    content: Unpacked,
    count: Count,
    unreachable: Mapping[str, Shape],
) -> Finding:
    """The finding for a tensor that the model does not have."""
    shape = content.tensors[name].shape
    if shape is not None and 0 in shape:
        return Finding("beside", "empty", None, shape)
    if (original := matches.matching.get(COPIES.get(name, ""))) and shape in (None, original.shape):
        return _check_copy(name, original._replace(tied_to=COPIES[name]), checkpoint, shape)
    what = classify_tensor(strip_indices(name), shape)
    if (
        what == "unknown"
        and name.endswith(".bias")
        and (weight := content.tensors.get(f"{name.removesuffix('.bias')}.weight"))
        and len(weight.file_names) > 1
    ):
        return Finding("beside", BIAS_OF_PACKED, None, shape)
    if name in unreachable and shape in (None, unreachable[name]):
        return Finding("beside", "never read", None, shape)
    is_expected = what in HARMLESS or (count.scope == "language_model" and what in NOT_COUNTED)
    return _finding("beside" if is_expected else "unexpected", what, shape)


@lru_cache(4096)
def _finding(finding: str, what: str, shape: tuple[int, ...] | None) -> Finding:
    """One object per kind of finding, because there may be hundreds of thousands of tensors."""
    return Finding(finding, what, None, shape)


def _find_extras(matches: Matches, checkpoint: Checkpoint, content: Unpacked) -> Iterator[tuple[str, Finding]]:
    for name, tensor in matches.matching.items():
        shape = content.tensors[name].shape
        if tensor.tied_to and tensor.part != "mtp":
            yield name, _check_copy(name, tensor, checkpoint, shape)
        elif not is_counted(tensor):
            yield (
                name,
                Finding("beside", "MTP layer" if tensor.part == "mtp" else describe_role(tensor), tensor.shape, shape),
            )
    for name, what in content.auxiliary.items():
        yield name, Finding("beside", what, None, checkpoint.tensors[name].shape)


def _check_copy(name: str, tensor: Tensor, checkpoint: Checkpoint, shape: tuple[int, ...] | None) -> Finding:
    """The finding for a tied tensor, whose values must equal those of the original."""
    original = str(tensor.tied_to)
    same = (
        have_same_samples(checkpoint, name, original)
        if name in checkpoint.tensors and original in checkpoint.tensors
        else None
    )
    if same is False:
        return Finding(
            "differs", "tied duplicate", tensor.shape, shape, f"differs from {original}, but the config ties them"
        )
    return Finding(
        "beside",
        "tied duplicate",
        tensor.shape,
        shape,
        f"of {original}, {'sampled values are equal' if same else 'values not compared'}",
    )


def describe_role(tensor: Tensor) -> str:
    """The components of a tensor, or its role if it is not learned."""
    if tensor.role != "parameter":
        return tensor.role.replace("_", " ")
    if not tensor.splits:
        return tensor.component
    return ", ".join(dict.fromkeys(component for component, _ in tensor.splits))


def sum_values(lines: Iterable[Line]) -> dict[str, int | None]:
    """{component or class: number of values}; None if only names are known."""
    found: dict[str, int | None] = {}
    for line in lines:
        before = found.get(line.finding.what, 0)
        found[line.finding.what] = None if before is None or line.values is None else before + line.values
    return found

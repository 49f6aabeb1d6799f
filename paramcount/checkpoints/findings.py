"""Tensors that do not simply match: missing, misshapen, unexpected, or outside the total; folded by pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.classify import HARMLESS, NOT_COUNTED, UNKNOWN, classify_tensor
from paramcount.checkpoints.folding import fold_names, strip_indices
from paramcount.checkpoints.matching import Matches, expand_names, find_renamed
from paramcount.checkpoints.opening.sampling import have_same_samples
from paramcount.checkpoints.packed.quantised import Unpacked
from paramcount.counting.count import Count
from paramcount.counting.tensors import list_unreachable
from paramcount.flow import TensorRow

# {copy: original} of the embedding that T5's encoder and decoder share, in older files.
T5_COPIES = {"encoder.embed_tokens.weight": "shared.weight"}
DUPLICATE = "tied duplicate"  # the class of a stored copy of a tied tensor
BIAS_OF_PACKED = "zero bias of packed weights"

Shape: TypeAlias = tuple[int, ...]


class Finding(NamedTuple):
    """The result of checking a tensor; equal for all tensors of the same kind."""

    kind: str  # missing | wrong shape | differs | unexpected | beside
    # Component if missing or with a wrong shape, otherwise class: tied duplicate, buffer, MTP layer, scale, unknown …
    what: str
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


class FindingLine(NamedTuple):
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
    problems = _find_problems(matches, checkpoint, content, count)
    return dict((*problems, *_find_extras(matches, checkpoint, content)))


def fold_findings(findings: Mapping[str, Finding]) -> tuple[FindingLine, ...]:
    """Findings folded by pattern of names, problems first."""
    names_by_finding: dict[Finding, list[str]] = {}
    for name, finding in findings.items():
        names_by_finding.setdefault(finding, []).append(name)
    lines = []
    for finding, all_names in names_by_finding.items():
        shape = finding.declared_shape if finding.file_shape is None else finding.file_shape
        for pattern, names in fold_names(all_names):
            lines.append(FindingLine(finding, pattern, len(names), None if shape is None else prod(shape) * len(names)))
    return tuple(sorted(lines, key=lambda line: line.finding.ok))


def _find_problems(
    matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count
) -> Iterator[tuple[str, Finding]]:
    file_tensors = content.tensors
    for name, tensor in matches.missing.items():
        yield name, Finding("missing", describe_role(tensor), tensor.shape)
    for name, tensor in matches.wrong_shape.items():
        yield name, Finding("wrong shape", describe_role(tensor), tensor.shape, file_tensors[name].shape)
    renamed = find_renamed(matches, file_tensors)
    unreachable = _list_unreachable_shapes(count) if matches.unexpected else {}
    for name in matches.unexpected:
        finding = _classify_unexpected(name, matches, checkpoint, content, count, unreachable)
        if name in renamed and not finding.ok:
            finding = finding._replace(note=f"same shape as the missing {renamed[name]}")
        yield name, finding


def _list_unreachable_shapes(count: Count) -> dict[str, Shape]:
    """{name, also without and with a prefix of the model: shape} of what the reference allocates but never uses."""
    tensors = expand_names(tensor for tensor, _ in list_unreachable(count.sizes, count.head))
    without_prefix = {name.partition(".")[2]: tensor.shape for name, tensor in tensors.items()}
    with_prefix = {f"model.{name}": tensor.shape for name, tensor in tensors.items()}
    return without_prefix | with_prefix | {name: tensor.shape for name, tensor in tensors.items()}


def _classify_unexpected(
    name: str,
    matches: Matches,
    checkpoint: Checkpoint,
    content: Unpacked,
    count: Count,
    unreachable: Mapping[str, Shape],
) -> Finding:
    shape = content.tensors[name].shape
    if shape is not None and 0 in shape:
        return Finding("beside", "empty", None, shape)
    original = matches.matching.get(T5_COPIES.get(name, ""))
    if original and shape in (None, original.shape):
        return _check_copy(name, original._replace(tied_to=T5_COPIES[name]), checkpoint, shape)
    label = classify_tensor(strip_indices(name), shape)
    if label == UNKNOWN and name.endswith(".bias"):
        weight = content.tensors.get(f"{name.removesuffix('.bias')}.weight")
        if weight and len(weight.file_names) > 1:
            return Finding("beside", BIAS_OF_PACKED, None, shape)
    if name in unreachable and shape in (None, unreachable[name]):
        return Finding("beside", "never read", None, shape)
    is_expected = label in HARMLESS or (count.scope == "language_model" and label in NOT_COUNTED)
    return _build_finding("beside" if is_expected else "unexpected", label, shape)


@lru_cache(4096)
def _build_finding(kind: str, label: str, shape: Shape | None) -> Finding:
    """One object per kind of finding, because there may be hundreds of thousands of tensors."""
    return Finding(kind, label, None, shape)


def _find_extras(matches: Matches, checkpoint: Checkpoint, content: Unpacked) -> Iterator[tuple[str, Finding]]:
    """Findings for tensors that match but are not in the total, and for those that belong to packed values."""
    for name, tensor in matches.matching.items():
        shape = content.tensors[name].shape
        if tensor.kind == "tied":
            yield name, _check_copy(name, tensor, checkpoint, shape)
        elif not tensor.is_counted:
            label = "MTP layer" if tensor.part == "mtp" else describe_role(tensor)
            yield name, Finding("beside", label, tensor.shape, shape)
    for name, role in content.auxiliary.items():
        yield name, Finding("beside", role, None, checkpoint.tensors[name].shape)


def _check_copy(name: str, tensor: TensorRow, checkpoint: Checkpoint, shape: Shape | None) -> Finding:
    """The finding for a tied tensor, whose values must equal those of the original."""
    original = str(tensor.tied_to)
    is_equal = None
    if name in checkpoint.tensors and original in checkpoint.tensors:
        is_equal = have_same_samples(checkpoint, name, original)
    if is_equal is False:
        note = f"differs from {original}, but the config ties them"
        return Finding("differs", DUPLICATE, tensor.shape, shape, note)
    note = f"of {original}, {'sampled values are equal' if is_equal else 'values not compared'}"
    return Finding("beside", DUPLICATE, tensor.shape, shape, note)


def describe_role(tensor: TensorRow) -> str:
    """The components of a tensor, or its role if it is not learned."""
    if tensor.role != "parameter":
        return tensor.role.replace("_", " ")
    return ", ".join(dict.fromkeys(component for component, _ in tensor.shares))


def sum_values(lines: Iterable[FindingLine]) -> dict[str, int | None]:
    """{component or class: number of values}; None if only names are known."""
    sums: dict[str, int | None] = {}
    for line in lines:
        before = sums.get(line.finding.what, 0)
        sums[line.finding.what] = None if before is None or line.values is None else before + line.values
    return sums

"""What is to be said of tensors that are not simply there: missing, misshapen, unexpected, or beside the parameters; folded by pattern."""

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

COPIES = {"encoder.embed_tokens.weight": "shared.weight"}  # of the table that T5's encoder and decoder share, in older files
BIAS_OF_PACKED = "zero bias of packed weights"


Shape: TypeAlias = tuple[int, ...]


class Finding(NamedTuple):
    """What is said of tensors alike."""

    kind: str  # missing | wrong shape | differs | unexpected | beside
    what: str  # of what is missing or misshapen its component; else its class: tied duplicate, buffer, MTP layer, scale, unknown …
    declared_shape: Shape | None = None
    file_shape: Shape | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the file is complete and correct with it."""
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
    """Tensors of one pattern of which the same is said."""

    finding: Finding
    pattern: str  # model.layers.{0-31}.self_attn.q_proj.weight
    tensors: int
    values: int | None  # in all of them, as stored if they are; None if only their names are known

    def to_dict(self) -> dict[str, Any]:
        """The line as plain data for JSON."""
        own = {"pattern": self.pattern, "tensors": self.tensors, "values": self.values, "ok": self.finding.ok}
        return self.finding.to_dict() | own


def collect_findings(matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count) -> dict[str, Finding]:
    """What is to be said of tensors that are not simply there, by their names in the file."""
    return dict((*_find_problems(matches, checkpoint, content, count), *_find_extras(matches, checkpoint, content)))


def fold_findings(said_of: Mapping[str, Finding]) -> tuple[Line, ...]:
    """The same, folded: what speaks against the file first."""
    found: dict[Finding, list[str]] = {}
    for name, said in said_of.items():
        found.setdefault(said, []).append(name)
    lines = []
    for finding, alike in found.items():
        shape = finding.declared_shape if finding.file_shape is None else finding.file_shape
        for pattern, names in fold_names(alike):
            lines.append(Line(finding, pattern, len(names), None if shape is None else prod(shape) * len(names)))
    return tuple(sorted(lines, key=lambda line: line.finding.ok))


def _find_problems(matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count) -> Iterator[tuple[str, Finding]]:
    held = content.tensors
    for name, tensor in matches.missing.items():
        yield name, Finding("missing", describe_role(tensor), tensor.shape)
    for name, tensor in matches.misshapen.items():
        yield name, Finding("wrong shape", describe_role(tensor), tensor.shape, held[name].shape)
    likely = find_renamed(matches, held)
    unreachable = _unreachable_shapes(count) if matches.unexpected else {}
    for name in matches.unexpected:
        said = _classify_unexpected(name, matches, checkpoint, content, count, unreachable)
        yield name, said._replace(note=f"same shape as the missing {likely[name]}") if name in likely and not said.ok else said


def _unreachable_shapes(count: Count) -> dict[str, tuple[int, ...]]:
    """{name, with and without the model's own prefix: shape} of what the reference allocates and no forward pass reads."""
    found = {name: tensor.shape for name, tensor in expand_names(tensor for tensor, _ in list_unreachable(count.sizes, count.head)).items()}
    return {name.partition(".")[2]: shape for name, shape in found.items()} | found


def _classify_unexpected(name: str, matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count, unreachable: Mapping[str, Shape]) -> Finding:
    """What a tensor is that nobody declared."""
    shape = content.tensors[name].shape
    if shape is not None and 0 in shape:
        return Finding("beside", "empty", None, shape)
    if (original := matches.there.get(COPIES.get(name, ""))) and shape in (None, original.shape):
        return _check_copy(name, original._replace(tied_to=COPIES[name]), checkpoint, shape)
    what = classify_tensor(strip_indices(name), shape)
    if what == "unknown" and name.endswith(".bias") and (weight := content.tensors.get(f"{name.removesuffix('.bias')}.weight")) and len(weight.file_names) > 1:
        return Finding("beside", BIAS_OF_PACKED, None, shape)
    if name in unreachable and shape in (None, unreachable[name]):
        return Finding("beside", "never read", None, shape)
    accounted = what in HARMLESS or (count.scope == "language_model" and what in NOT_COUNTED)
    return _finding("beside" if accounted else "unexpected", what, shape)


@lru_cache(4096)
def _finding(finding: str, what: str, shape: tuple[int, ...] | None) -> Finding:
    """The same object for all tensors alike, of which there may be hundreds of thousands."""
    return Finding(finding, what, None, shape)


def _find_extras(matches: Matches, checkpoint: Checkpoint, content: Unpacked) -> Iterator[tuple[str, Finding]]:
    for name, tensor in matches.there.items():
        shape = content.tensors[name].shape
        if tensor.tied_to and tensor.part != "mtp":
            yield name, _check_copy(name, tensor, checkpoint, shape)
        elif not is_counted(tensor):
            yield name, Finding("beside", "MTP layer" if tensor.part == "mtp" else describe_role(tensor), tensor.shape, shape)
    for name, what in content.beside.items():
        yield name, Finding("beside", what, None, checkpoint.tensors[name].shape)


def _check_copy(name: str, tensor: Tensor, checkpoint: Checkpoint, shape: tuple[int, ...] | None) -> Finding:
    """A tensor that the config ties to another: the values must be the same."""
    original = str(tensor.tied_to)
    same = have_same_samples(checkpoint, name, original) if name in checkpoint.tensors and original in checkpoint.tensors else None
    if same is False:
        return Finding("differs", "tied duplicate", tensor.shape, shape, f"differs from {original}, but the config ties them")
    return Finding("beside", "tied duplicate", tensor.shape, shape, f"of {original}, {'sampled values are equal' if same else 'values not compared'}")


def describe_role(tensor: Tensor) -> str:
    """What a tensor is for: its component, or the components that it is made of; of what is not learned, that."""
    if tensor.role != "parameter":
        return tensor.role.replace("_", " ")
    if not tensor.splits:
        return tensor.component
    return ", ".join(dict.fromkeys(component for component, _ in tensor.splits))


def sum_values(lines: Iterable[Line]) -> dict[str, int | None]:
    """Values by what they are; None where only names are known."""
    found: dict[str, int | None] = {}
    for line in lines:
        before = found.get(line.finding.what, 0)
        found[line.finding.what] = None if before is None or line.values is None else before + line.values
    return found

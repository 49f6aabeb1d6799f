"""What is to be said of tensors that are not simply there: missing, misshapen, unexpected, or beside the parameters; folded by pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import NamedTuple

from paramcount.checkpoints.checkpoint import Checkpoint
from paramcount.checkpoints.classify import HARMLESS, NOT_COUNTED, class_of
from paramcount.checkpoints.folding import folded, key
from paramcount.checkpoints.matching import Matches, is_counted, named, renamed
from paramcount.checkpoints.opening.sampling import same_values
from paramcount.checkpoints.packed.quantised import Unpacked
from paramcount.counting.count import Count
from paramcount.counting.tensors import Tensor, list_unreachable

COPIES = {"encoder.embed_tokens.weight": "shared.weight"}  # of the table that T5's encoder and decoder share, in older files
BIAS_OF_PACKED = "zero bias of packed weights"


class Finding(NamedTuple):
    """What is said of tensors alike."""

    finding: str  # missing | wrong shape | differs | unexpected | beside
    what: str  # of what is missing or misshapen its component; else its class: tied duplicate, buffer, MTP layer, scale, unknown …
    declared: tuple[int, ...] | None = None  # shape
    held: tuple[int, ...] | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is accounted for."""
        return self.finding == "beside"


class Line(NamedTuple):
    """Tensors of one pattern of which the same is said."""

    said: Finding
    pattern: str  # model.layers.{0-31}.self_attn.q_proj.weight
    tensors: int
    values: int | None  # in all of them: as held, where they are; None where only names are known


def findings(matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count) -> dict[str, Finding]:
    """What is to be said of tensors that are not simply there, by their names in the file."""
    return dict((*_against(matches, checkpoint, content, count), *_beside(matches, checkpoint, content)))


def lines_of(said_of: Mapping[str, Finding]) -> tuple[Line, ...]:
    """The same, folded: what speaks against the file first."""
    found: dict[Finding, list[str]] = {}
    for name, said in said_of.items():
        found.setdefault(said, []).append(name)
    lines = [
        Line(said, pattern, len(names), None if (shape := said.declared if said.held is None else said.held) is None else prod(shape) * len(names))
        for said, alike in found.items()
        for pattern, names in folded(alike)
    ]
    return tuple(sorted(lines, key=lambda line: line.said.ok))


def _against(matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count) -> Iterator[tuple[str, Finding]]:
    held = content.tensors
    for name, tensor in matches.missing.items():
        yield name, Finding("missing", component_of(tensor), tensor.shape)
    for name, tensor in matches.misshapen.items():
        yield name, Finding("wrong shape", component_of(tensor), tensor.shape, held[name].shape)
    likely = renamed(matches, held)
    unreachable = _unreachable(count) if matches.unexpected else {}
    for name in matches.unexpected:
        said = _undeclared(name, matches, checkpoint, content, count, unreachable)
        yield name, said._replace(note=f"has the shape of the missing {likely[name]}") if name in likely and not said.ok else said


def _unreachable(count: Count) -> dict[str, tuple[int, ...]]:
    """{name, with and without the model's own prefix: shape} of what the reference allocates and no forward pass reads."""
    found = {name: tensor.shape for name, tensor in named(tensor for tensor, _ in list_unreachable(count.sizes, count.head)).items()}
    return {name.partition(".")[2]: shape for name, shape in found.items()} | found


def _undeclared(name: str, matches: Matches, checkpoint: Checkpoint, content: Unpacked, count: Count, unreachable: Mapping[str, tuple[int, ...]]) -> Finding:
    """What a tensor is that nobody declared."""
    shape = content.tensors[name].shape
    if shape is not None and 0 in shape:
        return Finding("beside", "empty", None, shape)
    if (original := matches.there.get(COPIES.get(name, ""))) and shape in (None, original.shape):
        return _copy(name, original._replace(tied_to=COPIES[name]), checkpoint, shape)
    what = class_of(key(name), shape)
    if what == "unknown" and name.endswith(".bias") and (weight := content.tensors.get(f"{name.removesuffix('.bias')}.weight")) and len(weight.held) > 1:
        return Finding("beside", BIAS_OF_PACKED, None, shape)
    if name in unreachable and shape in (None, unreachable[name]):
        return Finding("beside", "never read", None, shape)
    accounted = what in HARMLESS or (count.scope == "language_model" and what in NOT_COUNTED)
    return _finding("beside" if accounted else "unexpected", what, shape)


@lru_cache(4096)
def _finding(finding: str, what: str, shape: tuple[int, ...] | None) -> Finding:
    """The same object for all tensors alike, of which there may be hundreds of thousands."""
    return Finding(finding, what, None, shape)


def _beside(matches: Matches, checkpoint: Checkpoint, content: Unpacked) -> Iterator[tuple[str, Finding]]:
    for name, tensor in matches.there.items():
        shape = content.tensors[name].shape
        if tensor.tied_to and tensor.part != "mtp":
            yield name, _copy(name, tensor, checkpoint, shape)
        elif not is_counted(tensor):
            yield name, Finding("beside", "MTP layer" if tensor.part == "mtp" else component_of(tensor), tensor.shape, shape)
    for name, what in content.beside.items():
        yield name, Finding("beside", what, None, checkpoint.tensors[name].shape)


def _copy(name: str, tensor: Tensor, checkpoint: Checkpoint, shape: tuple[int, ...] | None) -> Finding:
    """A tensor that the config ties to another: the values must be the same."""
    original = str(tensor.tied_to)
    same = same_values(checkpoint, name, original) if name in checkpoint.tensors and original in checkpoint.tensors else None
    if same is False:
        return Finding("differs", "tied duplicate", tensor.shape, shape, f"is no copy of {original}, to which the config ties it")
    return Finding("beside", "tied duplicate", tensor.shape, shape, f"of {original}, {'samples of both are equal' if same else 'its values were not compared'}")


def component_of(tensor: Tensor) -> str:
    """What a tensor is for: its component, or the components that it is made of; of what is not learned, that."""
    if tensor.role != "parameter":
        return tensor.role.replace("_", " ")
    if not tensor.splits:
        return tensor.component
    return ", ".join(dict.fromkeys(component for component, _ in tensor.splits))


def sums(lines: Iterable[Line]) -> dict[str, int | None]:
    """Values by what they are; None where only names are known."""
    found: dict[str, int | None] = {}
    for line in lines:
        before = found.get(line.said.what, 0)
        found[line.said.what] = None if before is None or line.values is None else before + line.values
    return found

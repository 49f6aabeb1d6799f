"""Possible causes of a difference between a published figure and the count: weights omitted or counted in addition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from math import prod
from typing import NamedTuple

from paramcount.architectures.classes import get_base_class, get_reference_class, has_lm_head
from paramcount.counting.arithmetic import format_sum
from paramcount.counting.components import TOWERS
from paramcount.counting.quantisation.scales import make_scales
from paramcount.counting.tensors import list_tensors
from paramcount.errors import join_words
from paramcount.flow import TensorRow
from paramcount.formats.packing import count_blocks
from paramcount.formats.quantization_config import PackedGroup
from paramcount.formats.weights import get_format
from paramcount.sizes import Sizes
from paramcount.sizes.derivations import change_class

# The names of causes and of their items, in `why` for published figures and for files.
TOKEN_EMBEDDING, LM_HEAD = "token embedding", "LM head"
ONE_EMBEDDING = "one embedding matrix (input or LM head)"  # which have the same size
BOTH_EMBEDDINGS = "both embedding matrices (input and LM head)"
TIED_HEAD = "tied LM head counted twice"
HEAD_LAYERS = "layers in front of the LM head"
POSITION_EMBEDDING, OTHER_EMBEDDINGS = "position embedding", "other embeddings"
BIASES, NORMS, BIASES_AND_NORMS = "biases", "norms", "biases and norms"
ENCODERS = {"vision": "vision encoder", "audio": "audio encoder", "projector": "projector"}
BUFFERS, LEGACY_BUFFERS = "buffers", "legacy buffers"
MTP_LAYER, MTP_LAYERS, MAIN_LAYERS = "MTP layer", "MTP layers", "main layers"
OWN_TENSORS, DUPLICATES = "own tensors", "duplicate embedding and LM head"

MTP_PROJECTIONS = ("eh_proj.weight", "input_proj.weight")  # from the hidden state and the next token to the MTP layer
MULTIPLES = (8, 16, 32, 64, 128, 256, 512, 1024)  # usual paddings of a vocabulary


class CauseItem(NamedTuple):
    """One part of a cause."""

    name: str  # "" if the cause has one part
    units: int
    arithmetic: str  # "2 × 129,280 × 7,168"


class Cause(NamedTuple):
    """Weights that a figure omits (negative) or counts in addition (positive)."""

    name: str
    units: int  # sum of the items
    note: str
    items: tuple[CauseItem, ...]


class CauseCandidate(NamedTuple):
    """A possible cause with its tensors."""

    name: str
    sign: int
    items: tuple[tuple[str, tuple[TensorRow, ...]], ...]
    claims: frozenset[str]  # candidates with a common claim exclude each other
    note: str = ""
    needs: str = ""  # a claim that another candidate must make
    replaced_by: tuple[tuple[str, tuple[TensorRow, ...]], ...] = ()  # items with the other sign

    @property
    def units(self) -> int:
        return sum(sign * count_elements(tensors) for _, tensors, sign in self.list_items())

    @property
    def cause(self) -> Cause:
        items = tuple(
            CauseItem(name, sign * count_elements(tensors), format_sum(tensors))
            for name, tensors, sign in self.list_items()
        )
        return Cause(self.name, self.units, self.note, items)

    def list_items(self) -> Iterator[tuple[str, tuple[TensorRow, ...], int]]:
        yield from ((name, tensors, self.sign) for name, tensors in self.items)
        yield from ((name, tensors, -self.sign) for name, tensors in self.replaced_by)


def are_compatible(candidates: Sequence[CauseCandidate]) -> bool:
    """Whether candidates can apply together: no claim is made twice, and every required claim is made."""
    claims: set[str] = set()
    for candidate in candidates:
        if claims & candidate.claims:
            return False
        claims |= candidate.claims
    return all(candidate.needs in claims for candidate in candidates if candidate.needs)


def count_elements(tensors: Iterable[TensorRow]) -> int:
    return sum(tensor.elements for tensor in tensors)


def find_candidates(
    tensors: Sequence[TensorRow], scheme: PackedGroup | None = None, *, files: bool = True
) -> list[CauseCandidate]:
    """Every possible cause for a model with these tensors.

    Args:
        scheme: the quantisation of the released files
        files: include values that only files contain: buffers, scales, duplicates
    """
    candidates = [*find_embeddings(tensors), *find_vectors(tensors), *find_encoders(tensors), *find_padding(tensors)]
    if files:
        for name, kind in ((BUFFERS, "buffer"), (LEGACY_BUFFERS, "legacy_buffer")):
            candidates.append(CauseCandidate(name, 1, (("", select_kind(tensors, kind)),), make_claims((), name)))
    candidates += find_mtp_layers(tensors, files)
    if files:
        candidates += find_scales(tensors, scheme)
    return [candidate for candidate in candidates if candidate.units]


def select_active(tensor: TensorRow) -> TensorRow:
    """The share of a tensor that one token uses, as a tensor."""
    repeats = tuple(repeat._replace(count=repeat.active) for repeat in tensor.repeats)
    if tensor.stacked is None:
        return tensor._replace(repeats=repeats)
    return tensor._replace(repeats=repeats, stacked=tensor.stacked._replace(count=tensor.stacked.active))


def select_kind(tensors: Iterable[TensorRow], kind: str) -> tuple[TensorRow, ...]:
    return tuple(tensor for tensor in tensors if tensor.kind == kind)


def select_components(tensors: Iterable[TensorRow], *names: str) -> tuple[TensorRow, ...]:
    """The tensors of these components that the total includes."""
    return tuple(tensor for tensor in tensors if tensor.is_counted and tensor.main_component in names)


def make_claims(tensors: Iterable[TensorRow], *more: str) -> frozenset[str]:
    return frozenset({*more, *(tensor.name for tensor in tensors)})


def find_embeddings(tensors: Sequence[TensorRow]) -> Iterator[CauseCandidate]:
    """Omitted embeddings, or a tied LM head counted twice; at most one of these candidates can apply."""
    embedding, head = select_components(tensors, "embedding"), select_components(tensors, "lm_head")
    tied = tuple(t for t in tensors if t.component == "lm_head" and t.kind == "tied")
    note = "also the LM head" if tied else ""
    inputs = CauseCandidate(TOKEN_EMBEDDING, -1, (("", embedding),), make_claims(embedding, "embeddings"), note)
    outputs = CauseCandidate(LM_HEAD, -1, (("", head),), make_claims(head, "embeddings"))
    claims = inputs.claims | outputs.claims
    if count_elements(embedding) == count_elements(head):
        yield outputs._replace(name=ONE_EMBEDDING, claims=claims)
    else:
        yield from (inputs, outputs)
    if embedding and head:
        yield CauseCandidate(BOTH_EMBEDDINGS, -1, ((TOKEN_EMBEDDING, embedding), (LM_HEAD, head)), claims)
    yield CauseCandidate(TIED_HEAD, 1, (("", tied),), make_claims((), "embeddings"))
    for name, label in (("position", POSITION_EMBEDDING), ("other_embedding", OTHER_EMBEDDINGS)):
        others = select_components(tensors, name)
        yield CauseCandidate(label, -1, (("", others),), make_claims(others))


def find_base_class(tensors: Sequence[TensorRow], sizes: Sizes) -> Iterator[CauseCandidate]:
    """The reference's class without an LM head, if its other layers differ: BERT's has a pooler, and no layers in front
    of the head.

    Args:
        tensors: those of the class with the LM head
        sizes: its sizes
    """
    architecture = type(sizes)
    base = get_base_class(architecture)
    if not base or has_lm_head(architecture, base):
        return
    whole = {tensor.name: tensor for tensor in select_kind(tensors, "total")}
    without = {
        tensor.name: tensor for tensor in select_kind(list_tensors(change_class(sizes, base), head=False), "total")
    }
    missing = [tensor for name, tensor in whole.items() if name not in without]
    layers = tuple(tensor for tensor in missing if tensor.component != "lm_head")
    added = tuple(tensor for name, tensor in without.items() if name not in whole)
    if not layers and not added:
        return
    head = tuple(tensor for tensor in missing if tensor.component == "lm_head")
    items = tuple((name, tensors) for name, tensors in ((LM_HEAD, head), (HEAD_LAYERS, layers)) if tensors)
    own = ", ".join(dict.fromkeys(name_module(tensor.name, whole) for tensor in added))
    yield CauseCandidate(
        f"{base} instead of {get_reference_class(architecture)}",
        -1,
        items,
        make_claims((*missing, *added), "embeddings"),
        replaced_by=((own, added),) if added else (),
    )


def name_module(name: str, others: Iterable[str]) -> str:
    """The outermost module of a tensor that the other tensors are not in.

    >>> name_module("bert.pooler.dense.weight", ["bert.embeddings.word_embeddings.weight"])
    'pooler'
    """
    parts = name.split(".")
    prefixes = (".".join((*parts[: i + 1], "")) for i in range(len(parts) - 1))
    depth = next((i for i, prefix in enumerate(prefixes) if not any(n.startswith(prefix) for n in others)), 0)
    return parts[depth]


def find_vectors(tensors: Sequence[TensorRow]) -> Iterator[CauseCandidate]:
    counted = select_kind(tensors, "total")
    norms = tuple(t for t in counted if t.component.partition(".")[0] == "norm")
    biases = tuple(t for t in counted if t.name.endswith("bias") and t not in norms)
    yield CauseCandidate(BIASES, -1, (("", biases),), make_claims(biases, "vectors"))
    yield CauseCandidate(NORMS, -1, (("", norms),), make_claims(norms, "vectors"))
    if biases and norms:
        items = ((BIASES, biases), (NORMS, norms))
        yield CauseCandidate(BIASES_AND_NORMS, -1, items, make_claims(biases + norms, "vectors"))


def find_encoders(tensors: Sequence[TensorRow]) -> Iterator[CauseCandidate]:
    """Omitted vision and audio encoders, with and without the projector."""
    by_name = {name: select_components(tensors, name) for name in TOWERS}
    for names in (("vision",), ("audio",), ("projector",), ("vision", "projector"), ("audio", "projector"), TOWERS):
        if all(by_name[name] for name in names):
            items = tuple((ENCODERS[name] if len(names) > 1 else "", by_name[name]) for name in names)
            claims = make_claims((tensor for name in names for tensor in by_name[name]), "encoders")
            yield CauseCandidate(join_words((ENCODERS[name] for name in names), "and"), -1, items, claims)


def find_padding(tensors: Sequence[TensorRow]) -> Iterator[CauseCandidate]:
    """Padding rows of the token embedding and the LM head: the vocabulary is padded to a multiple of a power of two."""
    embeddings = select_components(tensors, "embedding", "lm_head")
    if not embeddings:
        return
    by_rows: dict[tuple[int, ...], list[int]] = {}
    for multiple in MULTIPLES:
        rows = tuple(multiple * count_blocks(tensor.shape[0], multiple) for tensor in embeddings)
        by_rows.setdefault(rows, []).append(multiple)
    for rows, multiples in by_rows.items():
        pairs = [(tensor, n - tensor.shape[0]) for tensor, n in zip(embeddings, rows)]
        padding = tuple(tensor._replace(matrix=(n, *tensor.matrix[1:])) for tensor, n in pairs if n)
        sizes = join_words((f"{n:,}" for n in dict.fromkeys(rows)), "and")
        note = f"next multiple of {' or '.join(map(str, multiples))}"
        name = f"vocabulary padded to {sizes}"
        yield CauseCandidate(name, 1, (("", padding),), make_claims(embeddings, "embeddings"), note)


def find_mtp_layers(tensors: Sequence[TensorRow], files: bool) -> Iterator[CauseCandidate]:
    """MTP layers, with and without their input projection, buffers and duplicates."""
    own, unlearned, duplicates = (select_kind(tensors, kind) for kind in ("mtp", "mtp_buffer", "mtp_copy"))
    projections = tuple(tensor for tensor in own if tensor.name.endswith(MTP_PROJECTIONS))
    name = name_mtp_layers(own)
    first_items = [(OWN_TENSORS, own)]
    if projections:
        module = projections[0].name.rpartition(".")[0].rpartition(".")[2]
        rest = tuple(tensor for tensor in own if tensor not in projections)
        first_items.append((f"{OWN_TENSORS} without {module}", rest))
    in_files = [item for item in ((BUFFERS, unlearned), (DUPLICATES, duplicates)) if files and item[1]]
    for first, n in product(first_items, range(len(in_files) + 1)):
        for more in combinations(in_files, n):
            note = ", ".join(item for item, _ in (first, *more))
            yield CauseCandidate(name, 1, (first, *more), make_claims((), "mtp"), note)


def name_mtp_layers(own: Iterable[TensorRow]) -> str:
    layers = max((prod(r.count for r in tensor.repeats if r.axis == "layer") for tensor in own), default=1)
    return MTP_LAYER if layers == 1 else MTP_LAYERS


def find_scales(tensors: Sequence[TensorRow], scheme: PackedGroup | None) -> Iterator[CauseCandidate]:
    """The scales of quantised weights; if the MTP layers count, theirs too."""
    if scheme is None:
        return
    scales = [scale for tensor in tensors if (scale := make_scales(tensor, scheme))]
    main = tuple(tensor for tensor in scales if tensor.part != "mtp")
    mtp = tuple(tensor for tensor in scales if tensor.part == "mtp")
    name = f"{get_format(scheme.packing.layout).get_short_name(scheme.packing)} scales"
    yield CauseCandidate(name, 1, (("", main),), make_claims((), "scales", *(["mtp"] if mtp else [])))
    if mtp:
        items = ((MAIN_LAYERS, main), (MTP_LAYERS, mtp))
        yield CauseCandidate(name, 1, items, make_claims((), "scales"), needs="mtp")

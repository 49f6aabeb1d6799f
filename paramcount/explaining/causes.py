"""Why a published figure is no count of parameters: what it may leave out or count besides, read off the declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from math import prod
from typing import NamedTuple

from paramcount.counting.arithmetic import format_sum
from paramcount.counting.quantisation.scales import Scheme, count_blocks, make_scales
from paramcount.counting.tensors import TOWERS, Tensor, qualify_component
from paramcount.flow import Repeat

JOINS = ("eh_proj.weight", "input_proj.weight")  # of an MTP layer: what joins the hidden state with the next token
MULTIPLES = (8, 16, 32, 64, 128, 256, 512, 1024)  # that people pad a vocabulary to


class Item(NamedTuple):
    """A part of a cause."""

    name: str  # "" where the cause is of one piece
    units: int
    arithmetic: str  # "2 × 129,280 × 7,168"


class Cause(NamedTuple):
    """What a figure leaves out (negative) or counts besides."""

    name: str
    units: int  # the sum of its items
    note: str
    items: tuple[Item, ...]


class Candidate(NamedTuple):
    """A cause that may be, with the tensors it is made of."""

    name: str
    sign: int
    items: tuple[tuple[str, tuple[Tensor, ...]], ...]
    claims: frozenset[str]  # two that claim the same never stand together
    note: str = ""
    needs: str = ""  # a claim that another one has to make beside it

    @property
    def units(self) -> int:
        return self.sign * sum(map(elements, (tensors for _, tensors in self.items)))

    @property
    def cause(self) -> Cause:
        items = tuple(Item(name, self.sign * elements(tensors), format_sum(tensors)) for name, tensors in self.items)
        return Cause(self.name, self.units, self.note, items)


def stand_together(chosen: Sequence[Candidate]) -> bool:
    """Whether no two of some causes speak of the same, and each has beside it what it needs."""
    claimed: set[str] = set()
    for candidate in chosen:
        if claimed & candidate.claims:
            return False
        claimed |= candidate.claims
    return all(candidate.needs in claimed for candidate in chosen if candidate.needs)


def elements(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.elements for tensor in tensors)


def candidates(tensors: Sequence[Tensor], scheme: Scheme | None = None, *, files: bool = True) -> list[Candidate]:
    """Every cause that a model of these tensors offers. `scheme`: how its release is quantised. `files`: with what only files hold."""
    found = [*tables(tensors), *vectors(tensors), *towers(tensors), *padding(tensors)]
    found += [*buffers(tensors), *mtp_layers(tensors, files), *scales(tensors, scheme)] if files else mtp_layers(tensors, files)
    return [candidate for candidate in found if candidate.units]


def visited(tensor: Tensor) -> Tensor:
    """What one token uses of a tensor, as a tensor."""
    repeats = tuple(repeat._replace(count=repeat.active) for repeat in tensor.repeats)
    if not tensor.stacked:
        return tensor._replace(repeats=repeats)
    n, active = tensor.stacked.count, tensor.stacked.active
    stacked: Repeat = tensor.stacked._replace(count=active)
    return tensor._replace(repeats=repeats, stacked=stacked, shape=(tensor.shape[0] // n * active, *tensor.shape[1:]))


def owned(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Those that are counted: learned, tied to nothing, of no layer beside the model."""
    return (tensor for tensor in tensors if tensor.role == "parameter" and not tensor.tied_to and tensor.part != "mtp")


def of(tensors: Iterable[Tensor], *names: str) -> tuple[Tensor, ...]:
    """Those of some components of the overview."""
    return tuple(tensor for tensor in owned(tensors) if overview(tensor) in names)


def overview(tensor: Tensor) -> str:
    return qualify_component(tensor.part, tensor.component).partition(".")[0]


def named(tensors: Iterable[Tensor], *more: str) -> frozenset[str]:
    return frozenset({*more, *(tensor.name for tensor in tensors)})


def tables(tensors: Sequence[Tensor]) -> Iterator[Candidate]:
    """Tables left out, and a tied head counted for itself. Of the token table and the head one, both or a second one: never two of these."""
    embedding, head = of(tensors, "embedding"), of(tensors, "lm_head")
    tied = tuple(tensor for tensor in tensors if tensor.component == "lm_head" and tensor.tied_to and tensor.part != "mtp")
    inputs = Candidate("token table", -1, (("", embedding),), named(embedding, "tables"), "input embedding and output head in one")
    if not tied:
        inputs = inputs._replace(name="input embedding", note="")
    output = Candidate("output head", -1, (("", head),), named(head, "tables"))
    if elements(embedding) == elements(head):
        yield output._replace(name="one table", claims=inputs.claims | output.claims, note="input embedding or output head, equally large")
    else:
        yield from (inputs, output)
    if embedding and head:
        items = ((inputs.name, embedding), (output.name, head))
        yield Candidate("both tables", -1, items, inputs.claims | output.claims)
    yield Candidate("tied head a second time", 1, (("", tied),), named((), "tables"))
    for name, words in (("position", "position table"), ("other_embedding", "other tables")):
        yield Candidate(words, -1, (("", of(tensors, name)),), named(of(tensors, name)))


def vectors(tensors: Sequence[Tensor]) -> Iterator[Candidate]:
    """Biases left out, norms, or both."""
    norms = tuple(tensor for tensor in owned(tensors) if tensor.component.partition(".")[0] == "norm")
    biases = tuple(tensor for tensor in owned(tensors) if tensor.name.endswith("bias") and tensor not in norms)
    yield Candidate("biases", -1, (("", biases),), named(biases, "vectors"))
    yield Candidate("norms", -1, (("", norms),), named(norms, "vectors"))
    if biases and norms:
        yield Candidate("biases and norms", -1, (("biases", biases), ("norms", norms)), named(biases + norms, "vectors"))


def towers(tensors: Sequence[Tensor]) -> Iterator[Candidate]:
    """Each tower left out, with and without what joins it to the language model."""
    held = {name: of(tensors, name) for name in TOWERS}
    for names in (("vision",), ("audio",), ("projector",), ("vision", "projector"), ("audio", "projector"), TOWERS):
        if all(held[name] for name in names):
            words = [name if name == "projector" else f"{name} tower" for name in names]
            items = tuple((word if len(names) > 1 else "", held[name]) for word, name in zip(words, names))
            yield Candidate(joined(words), -1, items, named((t for name in names for t in held[name]), "towers"))


def padding(tensors: Sequence[Tensor]) -> Iterator[Candidate]:
    """Rows that nobody uses, added to the token table and the head up to a multiple of a power of two."""
    held = of(tensors, "embedding", "lm_head")
    if not held:
        return
    found: dict[tuple[int, ...], list[int]] = {}
    for multiple in MULTIPLES:
        rows = tuple(multiple * count_blocks(tensor.shape[0], multiple) for tensor in held)
        found.setdefault(rows, []).append(multiple)
    for rows, multiples in found.items():
        added = tuple(t._replace(shape=(n - t.shape[0], *t.shape[1:])) for t, n in zip(held, rows) if n > t.shape[0])
        words = joined(f"{n:,}" for n in dict.fromkeys(rows))
        note = f"next multiple of {' or '.join(map(str, multiples))}"
        yield Candidate(f"vocabulary padded to {words} rows", 1, (("", added),), named(held, "tables"), note)


def mtp_layers(tensors: Sequence[Tensor], files: bool) -> Iterator[Candidate]:
    """Layers for multi-token prediction: with or without the matrix that joins, with what files hold of them besides."""
    beside = [tensor for tensor in tensors if tensor.part == "mtp"]
    own = tuple(tensor for tensor in beside if tensor.role == "parameter" and not tensor.tied_to)
    unlearned = tuple(tensor for tensor in beside if tensor.role != "parameter")
    copies = tuple(tensor for tensor in beside if tensor.tied_to)
    joins = tuple(tensor for tensor in own if tensor.name.endswith(JOINS))
    name = mtp_name(own)
    firsts = [("own tensors", own)]
    if joins:
        join = joins[0].name.rpartition(".")[0].rpartition(".")[2]
        firsts.append((f"own tensors without {join}", tuple(tensor for tensor in own if tensor not in joins)))
    held = [item for item in (("buffers", unlearned), ("copies of table and head", copies)) if files and item[1]]
    for first, n in product(firsts, range(len(held) + 1)):
        for more in combinations(held, n):
            yield Candidate(name, 1, (first, *more), named((), "mtp"), ", ".join(item for item, _ in (first, *more)))


def mtp_name(own: Iterable[Tensor]) -> str:
    """One layer or several, by their own tensors."""
    layers = max((prod(r.count for r in tensor.repeats if r.axis == "layer") for tensor in own), default=1)
    return "MTP layer" if layers == 1 else "MTP layers"


def buffers(tensors: Sequence[Tensor]) -> Iterator[Candidate]:
    """What files hold without its being learned, newer and older ones."""
    held = tuple(tensor for tensor in tensors if tensor.role == "buffer" and tensor.part != "mtp")
    legacy = tuple(tensor for tensor in tensors if tensor.role == "legacy_buffer")
    yield Candidate("buffers", 1, (("", held),), named((), "buffers"))
    yield Candidate("legacy buffers", 1, (("", legacy),), named((), "legacy buffers"))


def scales(tensors: Sequence[Tensor], scheme: Scheme | None) -> Iterator[Candidate]:
    """The scales of quantised weights, those of MTP layers where these stand beside."""
    if scheme:
        found = [stored for tensor in tensors if (stored := make_scales(tensor, scheme))]
        model, mtp = (tuple(tensor for tensor in found if (tensor.part == "mtp") == beside) for beside in (False, True))
        name = f"{scheme.method.upper()} scales"
        yield Candidate(name, 1, (("", model),), named((), "scales", *(["mtp"] if mtp else [])))
        if mtp:
            yield Candidate(name, 1, (("main layers", model), ("MTP layers", mtp)), named((), "scales"), needs="mtp")


def joined(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last

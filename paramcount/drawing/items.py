"""A trace as the things that stand on its line of flow: products, boxes of data, small operations, experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from paramcount.drawing.matrices import Matrix, alike, below, of_data, of_output, of_state, of_weight, printed, stacked, width
from paramcount.tracing.trace import Product, Shape, Step

SIGNS = {"add": "+", "multiply": "×", "subtract": "−", "scale": "×", "relative bias": "+"}
FROM_LENGTHS = ("distances",)  # made of positions: of what they read, only the length counts
OUTSIDE = -1  # a step that is none: where data enter a body
JOINS = ("join", "beside", "append")
SILENT = ("to heads", "to groups", "reshape", "flatten")  # the same numbers, cut otherwise
LETTERS = {"Q": "queries", "K": "keys", "V": "values"}


class Item(NamedTuple):
    """One thing on the line of flow, of the step whose output leaves it."""

    kind: str  # source | product | lookup | box | operation | words | sign | experts
    step: int
    reads: tuple[int, ...]  # steps
    out: Matrix | None = None
    right: Matrix | None = None  # of a product: what the data are multiplied with
    weights: tuple[Matrix, ...] = ()  # what else is held: biases, the vector of a norm
    state: Matrix | None = None
    words: tuple[str, ...] = ()
    operand: int | None = None  # the step that gives `right`, where that is data
    body: tuple[Item, ...] = ()  # of one expert
    experts: tuple[int, int] = (0, 0)  # active for one token, of how many
    layers: int = 1  # that have as many experts
    note: str = ""  # what it is tied to
    left: str = ""  # of a product: the shape of what comes in


def flow(steps: Sequence[Step], indices: Sequence[int], *, states: Mapping[int, Shape], inside: bool = False) -> tuple[Item, ...]:
    """The items of some steps of a trace. `states`: what steps carry from token to token. `inside`: they are one of several equal bodies."""
    return Reader(steps, indices, states, inside).items_of_all()


class Reader:
    """One pass over the steps of a section."""

    def __init__(self, steps: Sequence[Step], indices: Sequence[int], states: Mapping[int, Shape], inside: bool) -> None:
        self.steps, self.indices, self.states, self.inside = steps, list(indices), states, inside
        self.within = set(indices)
        self.items: list[Item] = []
        self.owner: dict[int, int] = {}
        self.same: dict[int, int] = {}  # {step: the one whose output it hands on as it is}
        self.readers: dict[int, list[int]] = {}
        for i in indices:
            for j in steps[i].reads:
                self.readers.setdefault(j, []).append(i)

    def items_of_all(self) -> tuple[Item, ...]:
        self.cut = {i: product for i in self.indices if (product := self.cut_up(i))}
        turned = {i: found for i in self.indices if self.steps[i].op == "join" and (found := self.turned(i))}
        self.turns = {i: item for i, (item, _) in turned.items()}
        done = {j for _, steps in turned.values() for j in steps}
        for at, i in enumerate(self.indices):
            if i in done:
                continue
            if not self.inside and any(scope.axis == "expert" for scope in self.steps[i].scopes):
                done |= self.experts(at)
                continue
            for j in () if self.steps[i].op in FROM_LENGTHS else self.steps[i].reads:
                if j not in self.within and self.source_of(j) not in self.owner:
                    column = self.is_column(j)
                    out = of_data(self.steps[i].inputs[0], j, column=column) if self.inside else of_output(self.steps[j], j, column=column)
                    self.add(Item("source", j, (OUTSIDE,) if self.inside else (), out))
            self.take(i)
        items = named(self.items, self.owner)
        read = {step for item in items for step in item.reads}
        return tuple(item for item in items if item.reads or item.kind != "source" or item.step in read)

    def source_of(self, step: int) -> int:
        while step in self.same:
            step = self.same[step]
        return step

    def add(self, item: Item) -> None:
        self.owner[item.step] = len(self.items)
        reads = tuple(dict.fromkeys(self.source_of(j) for j in item.reads))
        operand = None if item.operand is None else self.source_of(item.operand)
        self.items.append(item._replace(reads=reads, operand=operand))

    def is_column(self, step: int) -> bool:
        """Whether its output is one number for each token."""
        return len(self.steps[step].out) == 1 and not self.steps[step].weights and self.steps[step].op != "last row"

    def take(self, i: int) -> None:
        """The item of a step, if it has one of its own."""
        step = self.steps[i]
        if i in self.cut or (step.op in (*SILENT, "split") and step.reads and step.reads[0] not in self.cut and alike(step.inputs[0], step.out)):
            self.same[i] = step.reads[0]
        elif step.op == "split" and step.reads[0] in self.cut:
            self.slice(i, self.cut[step.reads[0]])
        elif i in self.turns:
            self.add(self.turns[i])
        elif step.op in ("QKᵀ", "· V") and step.product:
            self.product_of_data(i, step.product)
        elif step.weights and (step.op == "linear" or over_patches(step)):
            self.matrix(i)
        elif step.op == "lookup" and step.weights:
            self.add(Item("lookup", i, step.reads, of_output(step, i), of_weight(step.weights[0], i, step.op, step.text), note=tie(step)))
        elif step.op == "mask":
            self.add(Item("words", i, step.reads, words=("mask",)))
        elif step.op == "softmax" and self.masks(i):
            self.softmax(i)
        elif step.op in SIGNS and len(step.reads) > 1 and not step.weights:
            self.add(Item("sign", i, step.reads, words=(SIGNS[step.op],)))
        elif step.op == "sum of experts":
            self.add(Item("sign", i, step.reads, words=("Σ",)))
        else:
            self.operation(i)

    def operation(self, i: int) -> None:
        """What is neither a product nor drawn in a way of its own: small where it keeps the shape."""
        step = self.steps[i]
        weights = tuple(of_weight(held, i, step.op) for held in step.weights)
        reads = () if step.op in FROM_LENGTHS else step.reads
        keeps = bool(reads) and bool(step.inputs) and alike(step.inputs[0], step.out)
        text = () if step.op == "split" else (step.text,)
        out = None if keeps else of_data(step.out, i, column=self.is_column(i))
        state = of_state(self.states[i], i) if i in self.states else None
        if weights or state:
            out = of_data(step.out, i, flat=True) if state and out is None else out
            self.add(Item("operation", i, reads, out, weights=weights, state=state, words=text))
        elif out is not None:
            joined = step.op in JOINS
            label = "" if joined else " ".join(text)
            self.add(Item("box" if step.reads else "source", i, reads, out._replace(label=label), words=("‖",) if joined else ()))
        else:
            self.small(i, text)

    def small(self, i: int, words: tuple[str, ...]) -> None:
        """Words on the line; on those that stand there already if nothing else reads those."""
        reads = self.steps[i].reads
        before = self.source_of(reads[0])
        at = self.owner.get(before)
        if at is not None and len(reads) == 1 and self.items[at].kind == "words" and self.reader_count(before) == 1 and len(self.items[at].words) < 3:
            self.items[at] = self.items[at]._replace(words=(*self.items[at].words, *words))
            self.same[i] = before
        else:
            self.add(Item("words", i, reads, words=words))

    def reader_count(self, step: int) -> int:
        """How many steps read its output, or the same numbers cut otherwise."""
        return sum(self.reader_count(i) if self.same.get(i) == step else 1 for i in self.readers.get(step, ()))

    # ---- products

    def matrix(self, i: int) -> None:
        """Data times a matrix, for each head where it makes heads."""
        step = self.steps[i]
        held, *others = step.weights
        out = of_data(step.out, i)
        if step.product:
            shape = step.product.right if step.heads > 1 else held.shape
            right = stacked(step.heads, shape, "weight", i, step.text, held.name)._replace(tied=held.tied_to is not None)
            biases, left = tuple(below(bias, right) for bias in others), printed(step.product.left)
        else:
            right, left = of_weight(held, i, step.op, step.text), printed(step.inputs[0])
            if over_patches(step):
                text = f"[{' · '.join(map(str, held.shape[1:]))}, {held.shape[0]}]"
                right = right._replace(rows=right.cols, cols=right.rows, shape=text)
            biases = tuple(of_weight(bias, i, step.op) for bias in others)
        self.add(Item("product", i, step.reads, out, right, biases, note=tie(step), left=left))

    def cut_up(self, i: int) -> Product | None:
        """The product of a matrix that is several side by side: whatever reads its output takes a share of it, and all of it is taken."""
        step, shares = self.steps[i], [self.steps[j] for j in self.readers.get(i, [])]
        if step.op != "linear" or len(step.out) != 2 or len(shares) < 2 or any(share.op != "split" for share in shares):
            return None
        return step.product if sum(width(share.out) for share in shares) == step.out[-1] else None

    def slice(self, i: int, product: Product) -> None:
        """A share of a matrix: the columns that make this part of its output."""
        share, whole = self.steps[i], self.steps[self.steps[i].reads[0]]
        held, *others = whole.weights
        heads, cols = (share.out[1], share.out[2]) if len(share.out) == 3 else (1, share.out[-1])
        text = share.text if share.text != share.op else ""
        right = stacked(int(heads), (product.right[0], cols), "weight", share.reads[0], text, held.name)
        biases = tuple(below(bias, right) for bias in others)
        self.add(Item("product", i, whole.reads, of_data(share.out, i), right, biases, words=(whole.text,), left=printed(product.left)))

    def product_of_data(self, i: int, product: Product) -> None:
        """Queries times keys, what comes of them times values."""
        step = self.steps[i]
        given = step.inputs[-1]
        copies = given[-2] if len(given) > 2 and isinstance(given[-2], int) else 1
        scores = step.op == "QKᵀ"
        right = stacked(copies, product.right, "data", i, "Kᵀ" if scores else "V")
        out = stacked(step.heads, product.out, "data", i, "attention scores") if scores else of_data(step.out, i, flat=True)
        self.add(Item("product", i, step.reads, out, right, operand=step.reads[-1], left=printed(product.left)))

    # ---- softmax, state, experts

    def masks(self, i: int) -> bool:
        return self.steps[self.steps[i].reads[0]].op == "mask" and self.steps[i].reads[0] in self.within

    def softmax(self, i: int) -> None:
        """What the mask leaves: a triangle, or a band of it."""
        step = self.steps[i]
        masking = self.steps[step.reads[0]]
        before = self.owner[step.reads[0]]
        weights = tuple(of_weight(held, i, step.op) for held in step.weights)
        self.items[before] = self.items[before]._replace(kind="operation" if weights else "words", words=("mask", "softmax"), weights=weights)
        out = stacked(step.heads, step.out[-2:], "data", i, "attention weights")
        if masking.mask:
            causal, window = masking.mask
            out = out._replace(mask="causal" if causal else "near", window=window)
            if window is not None and isinstance(out.cols, int) and window < out.cols:
                out = out._replace(label=f"attention weights, window {window:,}")
        self.add(Item("box", i, step.reads, out))

    def turned(self, i: int) -> tuple[Item, list[int]] | None:
        """Of two shares side by side again, one of them rotated: the words that say so, and the steps that they stand for."""
        passed, rotated, sources = [], [], set()
        for j in self.steps[i].reads:
            while self.is_small(j):
                rotated.append(j)
                j = self.steps[j].reads[0]
            if j not in self.within or self.steps[j].op != "split" or len(self.readers[j]) != 1:
                return None
            passed.append(j)
            sources.add(self.steps[j].reads[0])
        if len(sources) != 1 or len(rotated) != 1 or not alike(self.steps[min(sources)].out, self.steps[i].out):
            return None
        words = (f"{self.steps[rotated[0]].text} {self.steps[rotated[0]].out[-1]}", f"of {self.steps[i].out[-1]}")
        return Item("words", i, (min(sources),), words=words), [*passed, *rotated]

    def is_small(self, i: int) -> bool:
        """Whether it only does something to each number of what nothing else reads."""
        step = self.steps[i]
        return i in self.within and len(step.reads) == 1 and not step.weights and step.op != "split" and alike(step.inputs[0], step.out)

    def experts(self, at: int) -> set[int]:
        """All steps of one expert as one item; which these are."""
        scope = next(scope for scope in self.steps[self.indices[at]].scopes if scope.axis == "expert")
        indices = list(takewhile(lambda i: scope in self.steps[i].scopes, self.indices[at:]))
        body = flow(self.steps, indices, states=self.states, inside=True)
        reads = tuple(dict.fromkeys(j for i in indices for j in self.steps[i].reads if j not in indices))
        self.add(Item("experts", indices[-1], reads, body=body, experts=(scope.active, scope.copies)))
        return set(indices)


def over_patches(step: Step) -> bool:
    """Whether it is a matrix over all numbers of a patch, stored [out, channels, height, width]."""
    shape = step.weights[0].shape if step.weights else ()
    return len(shape) > 2 and len(step.inputs[0]) > 2 and shape[1:] == step.inputs[0][1:] and shape[0] == step.out[-1]


def tie(step: Step) -> str:
    return step.note if step.weights and step.weights[0].tied_to else ""


def named(items: Sequence[Item], owner: dict[int, int]) -> tuple[Item, ...]:
    """Items with the letters of attention on the data that go into it, and their matrices named after these; a share without a name has the whole's."""
    found = list(items)
    for item in items:
        if item.kind == "product" and item.operand is not None and item.right is not None:
            letters = zip((item.reads[0], item.operand), ("Q", "K")) if item.right.label == "Kᵀ" else ((item.operand, "V"),)
            for step, letter in letters:
                at = made_by(items, owner, step)
                if at is not None:
                    found[at] = lettered(found[at], letter)
    return tuple(
        item._replace(right=item.right._replace(label=item.words[0])) if item.kind == "product" and item.right and item.words and not item.right.label else item
        for item in found
    )


def made_by(items: Sequence[Item], owner: dict[int, int], step: int) -> int | None:
    """The item that has drawn the data of a step, which small operations hand on."""
    at = owner.get(step)
    while at is not None and items[at].out is None:
        at = owner.get(items[at].reads[0]) if items[at].reads and items[at].kind != "experts" else None
    return at


def lettered(item: Item, letter: str) -> Item:
    if item.kind not in ("product", "box") or item.out is None or item.operand is not None:
        return item
    right = item.right and item.right._replace(label=item.right.label or LETTERS[letter])
    label = letter if item.out.label in ("", "join", "split", letter) or item.kind == "product" else item.out.label
    return item._replace(out=item.out._replace(label=label), right=right)

"""Turns steps of a trace into items to draw: products, data, operations, experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from paramcount.drawing.matrices import (
    count_features,
    has_equal_rows,
    make_bias,
    make_data,
    make_output,
    make_stack,
    make_state,
    make_weight,
)
from paramcount.drawing.shapes import Rectangle
from paramcount.errors import format_shape
from paramcount.flow.operation import Form
from paramcount.tracing.trace import Product, Shape, Step, WeightUse

SIGNS = {Form.SUM: "+", Form.PRODUCT: "×", Form.DIFFERENCE: "−"}
OUTSIDE = -1  # not a step: the data that enter a body
LETTERS = {"Q": "queries", "K": "keys", "V": "values"}


class Item(NamedTuple):
    """One element of the drawing; its output is the output of `step`."""

    kind: str  # source | product | lookup | box | operation | words | sign | experts
    step: int
    reads: tuple[int, ...]  # steps
    out: Rectangle | None = None
    right: Rectangle | None = None  # right operand of a product
    weights: tuple[Rectangle, ...] = ()  # other weights: biases, the vector of a norm
    state: Rectangle | None = None
    words: tuple[str, ...] = ()
    operand: int | None = None  # step that computes `right`, if that is data
    body: tuple[Item, ...] = ()  # of one expert
    experts: tuple[int, int] = (0, 0)  # (active per token, total)
    layers: int = 1  # number of layers with these experts
    note: str = ""  # such as "tied to wte.weight" or "each for 4 query heads"
    left: str = ""  # shape of the left operand
    others: tuple[int, ...] = ()  # steps that it shows besides its own: reshapes, words on its line


def list_items(
    steps: Sequence[Step], indices: Sequence[int], *, states: Mapping[int, Shape], inside: bool = False
) -> tuple[Item, ...]:
    """The items of some steps. `states`: {step: recurrent state}. `inside`: the steps are the body of an expert."""
    return Reader(steps, indices, states, inside).read_items()


class Reader:
    """One pass over the steps of a section."""

    def __init__(
        self, steps: Sequence[Step], indices: Sequence[int], states: Mapping[int, Shape], inside: bool
    ) -> None:
        self.steps, self.indices, self.states, self.inside = steps, list(indices), states, inside
        self.within = set(indices)
        self.items: list[Item] = []
        self.owner: dict[int, int] = {}
        self.alias_of: dict[int, int] = {}  # {step: step whose output it passes on unchanged}
        self.readers: dict[int, list[int]] = {}
        for i in indices:
            for j in steps[i].reads:
                self.readers.setdefault(j, []).append(i)

    def read_items(self) -> tuple[Item, ...]:
        self.fused = {i: product for i in self.indices if (product := self.find_fused_product(i))}
        joins = [i for i in self.indices if self.steps[i].form is Form.CONCATENATION]
        rotations = {i: rotation for i in joins if (rotation := self.find_partial_rotation(i))}
        self.rotations = {i: item for i, (item, _) in rotations.items()}
        rotated = {j: i for i, (_, steps) in rotations.items() for j in steps}
        done = set(rotated)
        for position, i in enumerate(self.indices):
            if i in done:
                continue
            if not self.inside and any(scope.axis == "expert" for scope in self.steps[i].scopes):
                done |= self.add_experts(position)
                continue
            self.add_sources(i)
            self.add_step(i)
        items = name_operands(self.list_complete_items(rotated), self.owner, self.steps)
        needed = {step for item in items for step in item.reads}
        return tuple(item for item in items if item.reads or item.kind != "source" or item.step in needed)

    def list_complete_items(self, rotated: Mapping[int, int]) -> list[Item]:
        """The items with the other steps that they show. `rotated`: {step: join of a partial rotation}."""
        others: dict[int, list[int]] = {}
        for i in self.indices:
            for owner in self.readers[i] if i in self.fused else [rotated.get(i, self.find_source(i))]:
                if owner != i:
                    others.setdefault(owner, []).append(i)
        return [item._replace(others=tuple(others.get(item.step, ()))) for item in self.items]

    def add_sources(self, i: int) -> None:
        step = self.steps[i]
        for j in () if step.reads_only_lengths else step.reads:
            if j in self.within or self.find_source(j) in self.owner:
                continue
            column = self.is_column(j)
            if self.inside:
                self.add(Item("source", j, (OUTSIDE,), make_data(step.inputs[0], j, column=column)))
            else:
                self.add(Item("source", j, (), make_output(self.steps[j], j, column=column)))

    def find_source(self, step: int) -> int:
        while step in self.alias_of:
            step = self.alias_of[step]
        return step

    def add(self, item: Item) -> None:
        self.owner[item.step] = len(self.items)
        reads = tuple(dict.fromkeys(self.find_source(j) for j in item.reads))
        operand = None if item.operand is None else self.find_source(item.operand)
        self.items.append(item._replace(reads=reads, operand=operand))

    def is_column(self, step: int) -> bool:
        """Whether its output is one element per token."""
        return (
            len(self.steps[step].out) == 1
            and not self.steps[step].weights
            and self.steps[step].form is not Form.LAST_POSITION
        )

    def add_step(self, i: int) -> None:
        step = self.steps[i]
        if i in self.fused or self.is_reshape(step):
            self.alias_of[i] = step.reads[0]
        elif step.form is Form.SPLIT and step.reads[0] in self.fused:
            self.add_slice(i, self.fused[step.reads[0]])
        elif i in self.rotations:
            self.add(self.rotations[i])
        elif step.form in (Form.SCORES, Form.WEIGHTED_VALUES) and step.product:
            self.add_attention_product(i, step.product)
        elif step.weights and (step.form is Form.LINEAR or is_patch_embedding(step)):
            self.add_product(i)
        elif step.form is Form.LOOKUP and len(step.weights) == 1:
            table = make_weight(step.weights[0], i, step.form, step.text)
            self.add(Item("lookup", i, step.reads, make_output(step, i), table, note=describe_tie(step)))
        elif step.form is Form.MASK:
            self.add(Item("words", i, step.reads, words=("mask",)))
        elif (
            step.form is Form.ATTENTION_WEIGHTS
            and self.steps[step.reads[0]].form is Form.MASK
            and step.reads[0] in self.within
        ):
            self.add_softmax(i)
        elif step.form in SIGNS and len(step.reads) > 1 and not step.weights:
            self.add(Item("sign", i, step.reads, words=(SIGNS[step.form],)))
        elif step.form is Form.SUM_OF_EXPERTS:
            self.add(Item("sign", i, step.reads, words=("Σ",)))
        else:
            self.add_operation(i)

    def is_reshape(self, step: Step) -> bool:
        """Whether a step passes on its input with equal rows, so that nothing is drawn."""
        if step.form not in (Form.RESHAPE, Form.SPLIT) or not step.reads or step.reads[0] in self.fused:
            return False
        return has_equal_rows(step.inputs[0], step.out)

    def add_operation(self, i: int) -> None:
        """Add an operation without a form of its own; as words if it keeps the shape."""
        step = self.steps[i]
        weights = tuple(make_weight(weight, i, step.form) for weight in step.weights)
        reads = () if step.reads_only_lengths else step.reads
        keeps_shape = bool(reads) and bool(step.inputs) and has_equal_rows(step.inputs[0], step.out)
        text = () if step.form is Form.SPLIT else (step.text,)
        out = None if keeps_shape else make_data(step.out, i, column=self.is_column(i))
        state = make_state(self.states[i], i) if i in self.states else None
        if weights or state:
            out = make_data(step.out, i, flat=True) if state and out is None else out
            self.add(Item("operation", i, reads, out, weights=weights, state=state, words=text))
        elif out is not None:
            is_concatenation = step.form is Form.CONCATENATION
            kind = "box" if step.reads else "source"
            label, words = ("", ("‖",)) if is_concatenation else (" ".join(text), ())
            self.add(Item(kind, i, reads, out._replace(label=label), words=words))
        else:
            self.add_words(i, text)

    def add_words(self, i: int, words: tuple[str, ...]) -> None:
        """Add words on the line, merged with the preceding words if nothing else reads those."""
        reads = self.steps[i].reads
        source = self.find_source(reads[0])
        at = self.owner.get(source)
        if at is not None and len(reads) == 1 and self.count_readers(source) == 1:
            item = self.items[at]
            if item.kind == "words" and len(item.words) < 3:
                self.items[at] = item._replace(words=(*item.words, *words))
                self.alias_of[i] = source
                return
        self.add(Item("words", i, reads, words=words))

    def count_readers(self, step: int) -> int:
        """Number of steps that read its output, reshaped or not."""
        return sum(self.count_readers(i) if self.alias_of.get(i) == step else 1 for i in self.readers.get(step, ()))

    # ---- products

    def add_product(self, i: int) -> None:
        step = self.steps[i]
        weight, *others = list_operands(step)
        out = make_data(step.out, i)
        if step.product:
            shape = step.product.right if step.heads > 1 else weight.shape
            right = make_stack(step.heads, shape, "weight", i, step.text, weight.name)
            right = right._replace(tied=weight.tied_to is not None)
            biases, left = tuple(make_bias(bias, right) for bias in others), format_shape(step.product.left)
        else:
            right, left = make_weight(weight, i, step.form, step.text), format_shape(step.inputs[0])
            if is_patch_embedding(step):
                text = f"[{' · '.join(map(str, weight.shape[1:]))}, {weight.shape[0]}]"
                right = right._replace(rows=right.cols, cols=right.rows, shape=text)
            biases = tuple(make_weight(bias, i, step.form) for bias in others)
        self.add(Item("product", i, step.reads, out, right, biases, note=describe_tie(step), left=left))

    def find_fused_product(self, i: int) -> Product | None:
        """The product of a fused matrix, if its output is split completely."""
        step, shares = self.steps[i], [self.steps[j] for j in self.readers.get(i, [])]
        is_split = len(shares) > 1 and all(share.form is Form.SPLIT for share in shares)
        if step.form is not Form.LINEAR or len(step.out) != 2 or not is_split:
            return None
        return step.product if sum(count_features(share.out) for share in shares) == step.out[-1] else None

    def add_slice(self, i: int, product: Product) -> None:
        """Add one part of a fused matrix: the columns that compute this part of its output."""
        share, whole = self.steps[i], self.steps[self.steps[i].reads[0]]
        weight, *others = list_operands(whole)
        heads, cols = (share.out[1], share.out[2]) if len(share.out) == 3 else (1, share.out[-1])
        text = share.text if share.component else ""
        right = make_stack(int(heads), (product.right[0], cols), "weight", share.reads[0], text, weight.name)
        biases = tuple(make_bias(bias, right) for bias in others)
        out, left = make_data(share.out, i), format_shape(product.left)
        self.add(Item("product", i, whole.reads, out, right, biases, words=(whole.text,), left=left))

    def add_attention_product(self, i: int, product: Product) -> None:
        """Add queries times keys, or attention weights times values."""
        step = self.steps[i]
        operand = step.inputs[-1]
        copies = operand[-2] if len(operand) > 2 and isinstance(operand[-2], int) else 1
        if step.form is Form.SCORES:
            right = make_stack(copies, product.right, "data", i, "Kᵀ")
            out = make_stack(step.heads, product.out, "data", i, "attention scores")
        else:
            right = make_stack(copies, product.right, "data", i, "V")
            out = make_data(step.out, i, flat=True)
        note, left = describe_sharing(step.heads, copies), format_shape(product.left)
        self.add(Item("product", i, step.reads, out, right, operand=step.reads[-1], note=note, left=left))

    # ---- softmax, state, experts

    def add_softmax(self, i: int) -> None:
        """Add the unmasked attention weights: a triangle, or a band of it."""
        step = self.steps[i]
        mask = self.steps[step.reads[0]].mask
        at = self.owner[step.reads[0]]
        weights = tuple(make_weight(weight, i, step.form) for weight in step.weights)
        kind = "operation" if weights else "words"
        self.items[at] = self.items[at]._replace(kind=kind, words=("mask", "softmax"), weights=weights)
        out = make_stack(step.heads, step.out[-2:], "data", i, "attention weights")
        if mask:
            causal, window = mask
            out = out._replace(mask="causal" if causal else "near", window=window)
            if window is not None and isinstance(out.cols, int) and window < out.cols:
                out = out._replace(label=f"attention weights, window {window:,}")
        self.add(Item("box", i, step.reads, out))

    def find_partial_rotation(self, i: int) -> tuple[Item, list[int]] | None:
        """(item, steps) if a join only undoes a split after one part was rotated: partial rotary position embedding."""
        splits, rotations, sources = [], [], set()
        for j in self.steps[i].reads:
            while self.is_elementwise(j):
                rotations.append(j)
                j = self.steps[j].reads[0]
            if j not in self.within or self.steps[j].form is not Form.SPLIT or len(self.readers[j]) != 1:
                return None
            splits.append(j)
            sources.add(self.steps[j].reads[0])
        if len(sources) != 1 or len(rotations) != 1:
            return None
        (source,), (rotation,) = sources, rotations
        if not has_equal_rows(self.steps[source].out, self.steps[i].out):
            return None
        words = (f"{self.steps[rotation].text} {self.steps[rotation].out[-1]}", f"of {self.steps[i].out[-1]}")
        return Item("words", i, (source,), words=words), [*splits, rotation]

    def is_elementwise(self, i: int) -> bool:
        step = self.steps[i]
        return (
            i in self.within
            and len(step.reads) == 1
            and not step.weights
            and step.form is not Form.SPLIT
            and has_equal_rows(step.inputs[0], step.out)
        )

    def add_experts(self, position: int) -> set[int]:
        """Add all steps of one expert as one item, and return the steps."""
        scope = next(scope for scope in self.steps[self.indices[position]].scopes if scope.axis == "expert")
        indices = list(takewhile(lambda i: scope in self.steps[i].scopes, self.indices[position:]))
        body = list_items(self.steps, indices, states=self.states, inside=True)
        reads = tuple(dict.fromkeys(j for i in indices for j in self.steps[i].reads if j not in indices))
        self.add(Item("experts", indices[-1], reads, body=body, experts=(scope.active, scope.copies)))
        return set(indices)


def is_patch_embedding(step: Step) -> bool:
    """Whether it is a matrix over all elements of a patch, stored as [out, channels, height, width]."""
    shape = step.weights[0].shape if step.weights and step.inputs else ()
    return len(shape) > 2 and len(step.inputs[0]) > 2 and shape[1:] == step.inputs[0][1:] and shape[0] == step.out[-1]


def describe_sharing(query_heads: int, kv_heads: int) -> str:
    """How many query heads share a KV head; empty if each has its own.

    >>> describe_sharing(32, 8), describe_sharing(71, 1), describe_sharing(12, 12)
    ('each for 4 query heads', 'for all 71 query heads', '')
    """
    if kv_heads == 1:
        return f"for all {query_heads:,} query heads" if query_heads > 1 else ""
    shared = query_heads // kv_heads
    return f"each for {shared:,} query heads" if shared > 1 else ""


def list_operands(step: Step) -> list[WeightUse]:
    """The matrix and biases of a product, without integer copies of them, which only a quantised product reads."""
    return [weight for weight in step.weights if weight.role == "parameter"]


def describe_tie(step: Step) -> str:
    return step.note if step.weights and step.weights[0].tied_to else ""


def name_operands(items: Sequence[Item], owner: dict[int, int], steps: Sequence[Step]) -> tuple[Item, ...]:
    """The items with Q, K and V as labels of the operands of attention. Unnamed parts of fused matrices are named after
    the whole matrix."""
    labelled = list(items)
    for item in items:
        if item.kind != "product" or item.operand is None:
            continue
        letters = [(item.operand, "V")]
        if steps[item.step].form is Form.SCORES:
            letters = [(item.reads[0], "Q"), (item.operand, "K")]
        for step, letter in letters:
            at = find_producer(items, owner, step)
            if at is not None:
                labelled[at] = add_letter(labelled[at], letter)
    return tuple(map(name_part, labelled))


def name_part(item: Item) -> Item:
    """The item; an unnamed part of a fused matrix with the name of the whole."""
    if item.kind == "product" and item.right and item.words and not item.right.label:
        return item._replace(right=item.right._replace(label=item.words[0]))
    return item


def find_producer(items: Sequence[Item], owner: dict[int, int], step: int) -> int | None:
    """Index of the item that draws the output of a step, before element-wise operations."""
    at = owner.get(step)
    while at is not None and items[at].out is None:
        at = owner.get(items[at].reads[0]) if items[at].reads and items[at].kind != "experts" else None
    return at


def add_letter(item: Item, letter: str) -> Item:
    if item.kind not in ("product", "box") or item.out is None or item.operand is not None:
        return item
    right = item.right and item.right._replace(label=item.right.label or LETTERS[letter])
    label = letter if not item.out.label or item.kind == "product" else item.out.label
    return item._replace(out=item.out._replace(label=label), right=right)

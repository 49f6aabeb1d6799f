"""Sentences that explain single steps of a forward pass: what a step does with its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.errors import join_words
from paramcount.flow.operation import Form
from paramcount.tracing.trace import Step

# {form: what the output of such a step is called}
OUTPUTS = {
    Form.SUM: "the sum",
    Form.DIFFERENCE: "the difference",
    Form.PRODUCT: "the product",
    Form.CONCATENATION: "the concatenation",
    Form.SCORES: "the attention scores",
    Form.MASK: "the masked attention scores",
    Form.ATTENTION_WEIGHTS: "the attention weights",
    Form.WEIGHTED_VALUES: "the weighted sum of values",
    Form.SUM_OF_EXPERTS: "the sum of experts",
    Form.LAST_POSITION: "the last position",
}
ACTIONS = {  # {form: what such a step does, whatever its inputs and weights}
    Form.LINEAR_PER_HEAD: "multiplies {every} by weight matrices",
    Form.DIFFERENCE: "subtracts {last} from {first}",
    Form.RESHAPE: "reshapes {every}",
    Form.SCORES: "multiplies each query by each key",
    Form.ATTENTION_WEIGHTS: "turns {first} into attention weights by {text}",
    Form.WEIGHTED_VALUES: "sums the values, weighted by the attention weights",
    Form.SUM_OF_EXPERTS: "adds the outputs of the active experts",
    Form.KV_CACHE: "appends {every} to the KV cache",
}
# Notes that say no more than the form
PLAIN_NOTES = (
    "row lookup", "position lookup", "attention scores", "attention weights", "weighted sum of values", "appended",
)  # fmt: skip
LOOKUPS = {"row lookup": "for each of {}", "position lookup": "for each position"}  # {note: what selects the row}
DIRECTIONS = ("up", "down")  # the last words of the names of an MLP's projections


def explain_step(steps: Sequence[Step], i: int) -> str:
    """What a step does, in one or two sentences without sizes.

    Args:
        steps: All steps of a forward pass.
        i: The index of the step.
    """
    step = steps[i]
    names = list(dict.fromkeys(name_source(steps, i, j) for j in step.reads))
    note = "" if step.note in PLAIN_NOTES else step.note
    if not names:
        return join_sentences(note) or ("Reads its weights." if step.weights else "An input of the model.")
    if action := phrase_action(step, names):
        return join_sentences(action, note)
    if not note and step.inputs[0] == step.out and not step.weights:
        return f"Applies {step.text} to each element of {names[0]}."
    return join_sentences(note, f"Reads {join_words(names, 'and')}")


def phrase_action(step: Step, names: Sequence[str]) -> str:
    """What a step does with the inputs of these names; "" if its note says more."""
    first, last, every = names[0], names[-1], join_words(names, "and")
    match step.form:
        case Form.LINEAR:
            return f"multiplies {every} by a weight matrix{' and adds a bias' if has_bias(step) else ''}"
        case Form.LOOKUP if step.note in LOOKUPS:
            return f"looks up a row of its table {LOOKUPS[step.note].format(every)}"
        case Form.SUM if step.weights:
            return f"adds weights to {every}"
        case Form.SUM:
            return f"adds {last} to {first}" if len(names) == 2 else f"adds {every}"
        case Form.PRODUCT if len(names) == 2:
            return f"multiplies {first} by {last}"
        case Form.CONCATENATION if len(names) > 1:
            return f"concatenates {every}"
        case Form.SPLIT:
            return f"takes {'a part' if step.text == step.op else f'the {step.text}'} out of {every}"
        case _:
            return ACTIONS.get(step.form, "").format(first=first, last=last, every=every, text=step.text)


def name_source(steps: Sequence[Step], i: int, j: int) -> str:
    """What the output of step `j` is called as an input of step `i`."""
    step = steps[j]
    if steps[i].layers and step.layers != steps[i].layers and j == find_entry(steps, i):
        return "the layer's input"
    if step.form is Form.SUM and step.layers and not steps[i].layers:
        return "the output of the layers"
    if step.form is Form.SUM and any(between.form is Form.SUM for between in steps[j + 1 : i]):
        return "an earlier sum"
    if step.form in OUTPUTS:
        return OUTPUTS[step.form]
    if step.reads and step.form is Form.SPLIT and step.text == step.op:
        return f"a part of {name_source(steps, i, step.reads[0])}"
    if step.reads and step.form in (Form.RESHAPE, Form.KV_CACHE):
        return name_source(steps, i, step.reads[0])
    if step.text.endswith(DIRECTIONS):
        return f"the {step.text} projection"
    return f"the output of {step.text}" if step.reads and step.form is Form.PLAIN else f"the {step.text}"


def find_entry(steps: Sequence[Step], i: int) -> int | None:
    """The step whose output the layer that contains step `i` reads first."""
    first = i
    while first > 0 and steps[first - 1].layers == steps[i].layers:
        first -= 1
    return next(iter(steps[first].reads), None)


def has_bias(step: Step) -> bool:
    vectors = [weight for weight in step.weights if weight.role == "parameter" and len(weight.shape) == 1]
    return 0 < len(vectors) < len(step.weights)


def join_sentences(*phrases: str) -> str:
    """Phrases as sentences. A variable at the beginning stays as it is.

    >>> join_sentences("reads the gate", "", "RMS norm, ε = 1e-6"), join_sentences("a · log(position) + b")
    ('Reads the gate. RMS norm, ε = 1e-6.', 'a · log(position) + b.')
    """
    return " ".join(f"{p[0] if p[1:2] == ' ' else p[0].upper()}{p[1:]}." for p in phrases if p)

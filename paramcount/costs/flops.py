"""The FLOPs of a forward pass: per decoded token, per prompt and for training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paramcount.costs.fit import check_size
from paramcount.costs.memory import default_context
from paramcount.counting import SCHEMA_VERSION
from paramcount.tracing.run import has_encoder_input, trace_model
from paramcount.tracing.trace import Step, Trace, count_layers
from paramcount.tracing.walk import TraceOptions
from paramcount.zoo import Model, count_model

BACKWARD = 2  # FLOPs of a backward pass per FLOP of the forward pass: one product for the inputs, one for the weights


@dataclass(frozen=True)
class Flops:
    """FLOPs of the matrix products and convolutions: 2 per multiply-add.

    Attention runs over all pairs of a query and a key, visible or masked, as the reference computes it. While decoding
    and in a prompt the LM head runs for the last position, in training for all.
    """

    id: str
    name: str
    context: int  # tokens, the decoded one included
    source: int | None  # encoder input length
    active: int  # parameters that one token uses
    flops_per_token: int  # of decoding the last token of the context, with a KV cache
    prefill_flops: int  # of reading the whole context at once
    by_component: Mapping[str, int]  # while decoding; sums to flops_per_token
    prefill_by_component: Mapping[str, int]
    absorbed_flops_per_token: int | None  # of MLA if q and the output absorb the up-projection, as in most engines
    training_flops_per_token: int  # forward and backward, averaged over the context
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def two_n(self) -> int:
        """The usual estimate of `flops_per_token`: 2 per active parameter."""
        return 2 * self.active

    @property
    def six_n(self) -> int:
        """The usual estimate of `training_flops_per_token`: 6 per active parameter."""
        return 6 * self.active

    def train(self, tokens: int) -> int:
        """FLOPs of training on so many tokens, in sequences of `context`."""
        return self.training_flops_per_token * tokens

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        names = (
            "id", "name", "context", "source", "active", "flops_per_token", "prefill_flops",
            "absorbed_flops_per_token",
            "training_flops_per_token", "two_n", "six_n",
        )  # fmt: skip
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in names},
            "by_component": dict(self.by_component),
            "prefill_by_component": dict(self.prefill_by_component),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def measure_flops(model: Model, *, context: object = None, source: object = None) -> Flops:
    """The FLOPs of a model at a context length.

    Raises: ParamcountError for sizes that are not positive integers, and for inputs that the model cannot process.
    """
    count = count_model(model)
    tokens = default_context(model) if context is None else check_size("context", context)
    encoder_tokens = None if source is None else check_size("source", source)
    if encoder_tokens is None and has_encoder_input(model):
        encoder_tokens = tokens
    prefill = trace_model(model, TraceOptions(tokens, source=encoder_tokens))
    decoding = prefill
    if prefill.cache:
        decoding = trace_model(model, TraceOptions(1, past=tokens - 1, source=encoder_tokens))
    by_component, prefill_by_component = sum_by_component(decoding), sum_by_component(prefill)
    whole = sum(prefill_by_component.values())
    # A prompt needs the LM head at its last position, training at every one.
    forward = whole + (tokens - 1) * prefill_by_component.get("lm_head", 0) if prefill.cache else whole
    return Flops(
        id=model.id,
        name=model.name,
        context=tokens,
        source=encoder_tokens,
        active=count.active,
        flops_per_token=sum(by_component.values()),
        prefill_flops=whole,
        by_component=by_component,
        prefill_by_component=prefill_by_component,
        absorbed_flops_per_token=absorb_up_projections(decoding),
        training_flops_per_token=(1 + BACKWARD) * forward // tokens,
        warnings=(*prefill.warnings, *list_unknown(prefill)),
    )


def sum_by_component(trace: Trace) -> dict[str, int]:
    """FLOPs per component of the overview, the largest first; products of activations alone are "attention"."""
    sums: dict[str, int] = {}
    for name, flops in trace.flops_by_component.items():
        component = name.partition(".")[0]
        sums[component] = sums.get(component, 0) + flops
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def absorb_up_projections(trace: Trace) -> int | None:
    """FLOPs per token of MLA if attention runs over the compressed latents; None for other kinds of attention.

    The reference expands the latents of all cached tokens. Engines multiply q by the up-projection of the keys instead,
    and the result by that of the values: as many multiply-adds as expanding one token.

    Source: arXiv:2405.04434, section 2.1.2.
    """
    entries = [entry for entry in trace.cache if not entry.is_state]
    products = [step for step in trace.steps if step.product and not step.weights]  # QKᵀ and · V of each attention
    if not any(entry.is_latent for entry in entries) or len(products) != 2 * len(entries):
        return None
    saved = 0
    for entry, scores, mixed in zip(entries, products[::2], products[1::2]):
        if entry.is_latent:
            sizes = [
                shape[1] for shape in entry.shapes if isinstance(shape[1], int)
            ]  # the latent, then the rotated key
            expanded = (scores.multiply_adds or 0) + (mixed.multiply_adds or 0)
            saved += count_layers(scores) * (expanded - scores.heads * count_rows(mixed) * (sum(sizes) + sizes[0]))
    for step in trace.steps:
        if step.weights and step.multiply_adds and count_rows(step) > 1:
            saved += count_layers(step) * (step.multiply_adds - step.multiply_adds // count_rows(step))
    return sum(trace.flops_by_component.values()) - 2 * saved


def count_rows(step: Step) -> int:
    """The number of tokens that a step reads; of a product with the attention weights, those that are attended to."""
    rows = step.product.right[0] if step.product and not step.weights else step.inputs[0][0]
    return rows if isinstance(rows, int) else 1


def list_unknown(trace: Trace) -> list[str]:
    """Warnings about the operations whose FLOPs depend on an input other than text."""
    parts = dict.fromkeys(step.part for step in trace.steps if step.multiply_adds is None)
    return [f"the FLOPs of the {part} part are not included, because they depend on the input" for part in parts]

"""Beam: gated attention, residuals scaled by depth, and experts.

Five of six layers attend to a sliding window with rotary positions; the sixth attends to all tokens without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, elementwise, linear, norm
from paramcount.parts.attentions import normed
from paramcount.parts.decoders import SANDWICH, decoder, typed_layers, usual_layer
from paramcount.parts.feed_forward import correction, mixture
from paramcount.sizes import ABSENT, SLIDING, Condition, Flag, Indices, Positive, Sizes, Words, derived, hf, per_layer
from paramcount.sizes.conditions import grouped_routing, padding_in_table
from paramcount.sizes.layer_types import dense_by_type
from paramcount.sizes.rules import check_even, check_sliding_or_full


def full_every_sixth(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """Every sixth layer and the last see all tokens."""
    return tuple(SLIDING[(i + 1) % 6 == 0 or i == c["n_layers"] - 1] for i in per_layer(c))


def turned(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of the layers that rotate: those to which rope_parameters gives any, where it is there."""
    rope = js.get("rope_parameters")
    if rope is None:
        return ("sliding_attention",)
    words = sorted(set(c["layer_types"]))
    if not isinstance(rope, Mapping) or any(not isinstance(rope[word], (Mapping, type(None))) for word in words):
        raise ParamcountError(
            f"= {describe_value(rope)}",
            where="rope_parameters",
            expected="a mapping or null for each entry of layer_types",
        )
    return tuple(word for word in words if rope[word] is not None)


class Beam(Sizes):
    """Source: modeling_beam.py of the reference."""

    reference: ClassVar[str] = "BeamForCausalLM"
    float32: ClassVar[tuple[str, ...]] = ("e_score_correction_bias", "mlp.gate.weight")
    conditions: ClassVar[tuple[Condition, ...]] = (grouped_routing(8, 4), padding_in_table(None))

    vocab_size: Positive = hf(absent=151936)
    d_model: Positive = hf(absent=5120)
    n_layers: Positive = hf(absent=52)
    n_heads: Positive = hf(absent=48)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=128)
    layer_types: Words = hf(absent=full_every_sixth, null=ABSENT)
    rotated_words: Words = derived(turned)
    window: Positive | None = hf(absent=512)
    d_ff: Positive = hf(absent=20480)
    dense_layers: Indices = derived(dense_by_type(lambda js, c: tuple(range(min(3, c["n_layers"])))))
    d_expert: Positive = hf(absent=2560)
    n_routed_experts: Positive = hf("num_experts", absent=256)
    n_active_experts: Positive = hf(absent=8)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def check(c) -> None:
        check_sliding_or_full(c)
        if set(c.rotated_words) & set(c.layer_types):
            check_even(c, "d_head")


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, mlp = kind
    window = c.window if word == "sliding_attention" else None
    options: dict[str, Any] = {
        "bias": c.attention_bias,
        "prepare": normed(rotate=word in c.rotated_words),
        "gate": lambda x, a: gate(c, x, a),
        "window": window,
    }
    return usual_layer(c, x, (lambda h: moe(c, h)) if mlp == "moe" else None, arrange=scaled, **options)


def moe(c: Any, x: Data) -> Data:
    return activate(mixture(c, x, "mlp.", choose=correction(c, "mlp.gate.e_score_correction_bias")), "routed scale")


def gate(c: Any, x: Data, a: Data) -> Data:
    """A gate for each value, with one learned number for each head."""
    g = linear(x, "self_attn.gate_proj", "qkv.gate", a.shape[1:])
    return a * activate(elementwise(g, "add", "self_attn.gate_bias", "qkv.gate", c.n_heads), "sigmoid")


def scaled(
    x: Data, attention: Callable[[Data], Data], feed_forward: Callable[[Data], Data], *, bias: bool = False
) -> Data:
    """Pre-norm and post-norm. Residual and update are scaled by depth, so that their sum keeps its magnitude."""
    for part, before, behind in ((attention, *SANDWICH[:2]), (feed_forward, *SANDWICH[2:])):
        x = activate(x, "depth scale") + activate(
            norm(part(norm(x, before, bias=bias)), behind, bias=bias), "depth scale"
        )
    return x

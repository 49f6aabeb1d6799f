"""Flint: many small experts and one ungated shared expert, and an attention sink per head.

Layers with a sliding window have positions; full-attention layers have none.
"""

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.sizes import ABSENT, SLIDING, ConfigJson, FieldValues, derived, hf, per_layer, rotary, setting
from paramcount.sizes.conditions import even_where_rotated, padding_in_table
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.rules import check_layer_types
from paramcount.sizes.types import Flag, Indices, Natural, Positive, Words


def full_every_fourth(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """The first two layers, every fourth and the last see all tokens."""
    return tuple(SLIDING[i < 2 or i % 4 == 1 or i == c["n_layers"] - 1] for i in per_layer(c))


def without_experts(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """Qwen's two keys; where there is no list, the first two layers."""
    named = js.get("mlp_only_layers")
    only, step = (0, 1) if named is None else named, check_no_types(js, "decoder_sparse_step", 1)
    return tuple(i for i in per_layer(c) if i in only or (i + 1) % step)


class Flint(AttentionDecoder):
    """Source: FlintDecoderLayer and FlintTopKRouter of the reference, modeling_flint.py."""

    reference = "FlintForCausalLM"
    is_section_type = True
    float32 = ("gate.weight", "sinks", "softmax_offset")  # the last as saved
    conditions = (padding_in_table(None), even_where_rotated("sliding_attention", named=True))
    defaults = {"d_head": 128}

    layer_types: Words = hf(absent=full_every_fourth, null=ABSENT)
    window: Positive = hf()
    d_ff: Natural = hf()
    dense_layers: Indices = derived(without_experts)
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()
    d_shared_expert: Natural = hf("shared_expert_intermediate_size")
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=262144)
    norm_topk_prob = setting("norm_topk_prob", default=True)
    kinds = layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        sliding = word == "sliding_attention"
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, qk_norm=True, rotate=sliding,
            sinks="softmax_offset", window=c.window if sliding else None,
        )  # fmt: skip
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "dense":
            return x + c.gated_mlp(h)
        shared = gated_mlp(h, "mlp.shared_expert.", "shared_experts", c.d_shared_expert, activation=c.activation)
        return x + (mixture(c, h, "mlp.", choose=c.choose) + shared)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "sigmoid", normalise=c.norm_topk_prob)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", SLIDING)

"""Flint: many small experts and one ungated shared expert, and an attention sink per head.

Layers with a sliding window have positions; full-attention layers have none.
"""

from functools import partial

from paramcount.declare import Data, ops, parts, sizes


def without_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """Qwen's two keys; where there is no list, the first two layers."""
    named = js.get("mlp_only_layers")
    only, step = (0, 1) if named is None else named, sizes.check_no_types(js, "decoder_sparse_step", 1)
    return tuple(i for i in sizes.per_layer(c) if i in only or (i + 1) % step)


class Flint(parts.AttentionBias, parts.RoutedExperts, parts.AttentionDecoder):
    """Source: FlintDecoderLayer and FlintTopKRouter of the reference, modeling_flint.py."""

    reference = "FlintForCausalLM"
    rotated = None
    float32 = ("gate.weight", "sinks", "softmax_offset")  # the last as saved
    conditions = (sizes.padding_in_table(None), sizes.even_where_rotated("sliding_attention", named=True))
    defaults = {"d_head": 128}

    layer_types: sizes.Words = sizes.hf(
        absent=sizes.words_by(lambda i, n: i < 2 or i % 4 == 1 or i == n - 1), null=sizes.ABSENT
    )
    window: sizes.Positive = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(without_experts)
    d_shared_expert: sizes.Natural = sizes.hf("shared_expert_intermediate_size")

    norm_topk_prob = sizes.setting("norm_topk_prob")
    kinds = parts.layers_by_type_and_mlp
    norms_heads = True

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        sliding = word == "sliding_attention"
        h, sinks = c.norm(x, "input_layernorm"), parts.add_sinks(c, "self_attn.softmax_offset")
        mix = partial(ops.attend_causally, window=c.window if sliding else None, sinks=sinks)
        x = x + c.self_attention(h, bias=c.attention_bias, prepare=c.prepare_by(sliding), mix=mix)
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "dense":
            return x + c.gated_mlp(h)
        shared = parts.gated_mlp(h, "mlp.shared_expert.", "shared_experts", c.d_shared_expert, activation=c.activation)
        return x + (parts.mixture(c, h, "mlp.", choose=c.choose) + shared)

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "sigmoid", normalise=c.norm_topk_prob)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)

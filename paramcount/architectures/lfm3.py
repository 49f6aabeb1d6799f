"""LFM3: LFM2 with sliding windows in half of the attention layers, a gate per head and a post-norm per sublayer."""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.lfm2 import NAMES
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

ROPE: Mapping[str, Mapping[str, Any]] = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
    "full_attention": {"rope_type": "proportional", "rope_theta": 1_000_000.0, "partial_rotary_factor": 0.5},
}
KINDS = ("conv", "full_attention", "sliding_attention", "attention")  # the last is the older word for the second


def kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    return tuple(
        "full_attention" if i % 4 == 2 else "sliding_attention" if i and i % 4 == 0 else "conv"
        for i in sizes.per_layer(c)
    )


def read_rope(config: Mapping[str, Any], word: str) -> ops.Rope:
    """The rotary positions of a kind of layer."""
    parameters = (config.get("rope_parameters") or ROPE)[word]
    return sizes.make_rope(
        parameters.get("rope_type", "default"), parameters["rope_theta"], parameters, config, 128_000
    )


class Lfm3(parts.AttentionBias, parts.AttentionDecoder):
    """Source: Lfm3DecoderLayer of the reference."""

    reference = "Lfm3ForCausalLM"
    modules = {".self_attn.gate_proj": (".self_attn.g_proj",)}
    names = ("embed_tokens", "layers", "embedding_norm")
    conditions = (sizes.padding_in_table(124893),)

    layer_types: sizes.Words = sizes.hf(absent=kinds, null=sizes.ABSENT)
    window: sizes.Positive | None = sizes.hf()
    d_conv: sizes.Positive = sizes.hf("conv_L_cache")
    mixer_bias: sizes.Flag = sizes.hf("conv_bias")
    attention_gate: sizes.Flag = sizes.hf("use_attention_gate")
    norms_behind: sizes.Flag = sizes.hf("use_sandwich_norm")

    norm_eps = sizes.setting("norm_eps", "rms_norm_eps")

    rope = sizes.setting(default=lambda config, c: read_rope(config, "full_attention"))
    sliding_rope = sizes.setting(default=lambda config, c: read_rope(config, "sliding_attention"))
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "operator_norm")
        if kind == "conv":
            h = parts.short_convolution(h, "conv.", c.d_conv, bias=c.mixer_bias)
        else:
            h = c.attention(h, "self_attn.", is_sliding=kind == "sliding_attention")
        x = x + (c.norm(h, "post_operator_norm") if c.norms_behind else h)
        h = parts.gated_mlp(c.norm(x, "ffn_norm"), "feed_forward.", "mlp", c.d_ff, names=NAMES, activation="silu")
        return x + (c.norm(h, "post_ffn_norm") if c.norms_behind else h)

    def attention(c, x: Data, prefix: str, *, is_sliding: bool) -> Data:
        """Queries and keys with norms; each head may have a gate."""
        positions = c.sliding_rope if is_sliding else c.rope

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            q = ops.rms_norm(q, prefix + "q_norm", c.norm_eps)
            k = ops.rms_norm(k, prefix + "k_norm", c.norm_eps)
            return ops.rope(q, positions), ops.rope(k, positions)

        def gate(x: Data, a: Data) -> Data:
            return ops.scale(
                a, ops.activate(ops.linear(x, prefix + "gate_proj", "qkv.gate", (c.n_heads, 1)), "sigmoid")
            )

        def mix(q: Data, k: Data, v: Data) -> Data:
            a = ops.attend_causally(q, k, v, window=c.window if is_sliding else None)  # [n, n_heads, d_head]
            return gate(x, a) if c.attention_gate else a

        return c.self_attention(x, prefix, bias=c.attention_bias, prepare=prepare, mix=mix)

    def unused_fields(c) -> tuple[str, ...]:
        return () if set(c.layer_types) - {"conv"} else ("n_kv_heads", "d_head")

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        if c.window is None and "sliding_attention" in c.layer_types:
            raise ParamcountError(
                "= null, but there are sliding attention layers",
                where=FieldName("window"),
                expected="a positive integer",
            )

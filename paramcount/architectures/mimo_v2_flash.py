"""MiMo-V2-Flash: layers with a window have sinks and twice the key-value heads.

Values narrower than keys, a third of each head rotated.
"""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

ROPES = {  # the reference's default of rope_parameters
    sizes.SLIDING[1]: {"rope_type": "default", "rope_theta": 5_000_000.0, "partial_rotary_factor": 0.334},
    sizes.SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.334},
}


def looks_back(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Released files count the tokens before this one, the reference this one too."""
    if js.get("sliding_window_size") is not None:
        return sizes.check_no_types(js, "sliding_window_size", 0) + 1
    return sizes.check_no_types(js, "sliding_window", 129)


ROPES = {  # the reference's default of rope_parameters
    sizes.SLIDING[1]: {"rope_type": "default", "rope_theta": 5_000_000.0, "partial_rotary_factor": 0.334},
    sizes.SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.334},
}


class MiMoV2Flash(parts.AttentionBias, parts.GroupedExperts, parts.AttentionDecoder):
    """Source: arXiv:2601.02780, section 2; MiMoV2FlashAttention and MiMoV2FlashTopkRouter of the reference."""

    reference = "MiMoV2FlashForCausalLM"
    gguf = "mimo2"
    rotated = None
    adapts_experts = False
    conditions = (sizes.grouped_routing(1, 1), sizes.not_null("n_routed_experts"), sizes.padding_in_table(None))
    defaults = {"d_head": 192}

    d_v: sizes.Positive = sizes.hf()
    layer_types: sizes.Words = sizes.hf(
        absent=sizes.words_by(lambda i, n: i == 0 or (i + 1) % 6 == 0),
        null=sizes.ABSENT,
    )
    window: sizes.Positive = sizes.derived(looks_back)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_width_of(sizes.SLIDING[1], 0.334, 0.334))
    d_rope_sliding: sizes.Natural = sizes.derived(sizes.rotary_width_of(sizes.SLIDING[0], 0.334, 0.334))
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: (0,)))
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts", null=sizes.unused, late=True)

    rope = sizes.rotary_of(sizes.SLIDING[1], ROPES, 131072, share=0.334)
    rope_sliding = sizes.rotary_of(sizes.SLIDING[0], ROPES, 131072, share=0.334)
    # Null stands for 1.
    value_scale = sizes.setting(
        "attention_value_scale", default=lambda config, c: 1.0 if "attention_value_scale" in config else 0.707
    )
    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        x = x + c.attention(c.norm(x, "input_layernorm"), sliding=word == sizes.SLIDING[0])
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "moe":
            return x + parts.mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def attention(c, x: Data, *, sliding: bool) -> Data:
        heads = parts.Heads(c.n_heads, 2 * c.n_kv_heads if sliding else c.n_kv_heads, c.d_head)
        d_rope, settings = (c.d_rope_sliding, c.rope_sliding) if sliding else (c.d_rope, c.rope)
        bias = c.attention_bias
        q = ops.linear(x, "self_attn.q_proj", "qkv.q", (heads.n_heads, heads.d_head), bias=bias)  # [n, n_heads, d_head]
        k = ops.linear(x, "self_attn.k_proj", "qkv.k", (heads.n_kv_heads, heads.d_head), bias=bias)
        v = ops.linear(x, "self_attn.v_proj", "qkv.v", (heads.n_kv_heads, c.d_v), bias=bias)  # [n, n_kv_heads, d_v]
        q, k = (parts.partial_rope(y, d_rope, settings) for y in (q, k))
        window, sinks = (c.window, parts.add_sinks(heads, "self_attn.attention_sink_bias")) if sliding else (None, None)
        a = ops.attend_causally(q, k, ops.scale_by(v, c.value_scale), window=window, sinks=sinks)  # [n, n_heads, d_v]
        return parts.project_output(a, "self_attn.o_proj", c.d_model)

    def check(c) -> None:
        sizes.check_sliding_or_full(c)
        if sizes.SLIDING[0] in c.layer_types and c.n_heads % (2 * c.n_kv_heads):
            found = (
                f"= {c.n_kv_heads}, and 2 × {c.n_kv_heads} does not divide " + FieldName("n_heads") + f" = {c.n_heads}"
            )
            raise ParamcountError(
                found,
                where=FieldName("n_kv_heads"),
                expected="half of a divisor of " + FieldName("n_heads"),
                sizes=(c.n_kv_heads, c.n_heads),
            )
        sizes.check_at_most(c, "d_rope", "d_head")
        sizes.check_at_most(c, "d_rope_sliding", "d_head")

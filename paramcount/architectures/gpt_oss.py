"""gpt-oss: every second layer looks back over a window, a sink for each head, biased router and experts."""

from functools import partial

from paramcount.declare import Data, ops, parts, sizes

KINDS = ("sliding_attention", "full_attention")
YARN = {
    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip


class GptOss(parts.AttentionBias, parts.MixtureDecoder):
    """Source: arXiv:2508.10925, section 2; GptOssAttention and GptOssExperts of the reference."""

    reference = "GptOssForCausalLM"
    gguf = "gpt-oss"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    task_heads = "GENERIC"
    float32_if_float16 = ("post_attention_layernorm", "input_layernorm", "norm")
    conditions = (sizes.padding_in_table(None),)
    defaults = {"d_head": 64}

    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "num_local_experts")
    layer_types: sizes.Words = sizes.hf(
        absent=lambda js, c: tuple(KINDS[i % 2] for i in range(c["n_layers"])), null=sizes.ABSENT
    )
    window: sizes.Positive = sizes.hf()

    rope = sizes.rotary(absent=YARN)
    alpha = sizes.setting("swiglu_alpha")
    limit = sizes.setting("swiglu_limit")
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        window = c.window if kind == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        mix = partial(ops.attend_causally, window=window, sinks=parts.add_sinks(c, "self_attn.sinks"))
        x = x + c.self_attention(h, bias=c.attention_bias, mix=mix)
        return x + c.moe(c.norm(x, "post_attention_layernorm"))

    def moe(c, x: Data) -> Data:
        """All experts of a layer are stored as one tensor for each projection, [experts, in, out]."""
        logits = ops.linear(x, "mlp.router", "router", c.n_routed_experts, bias=True)  # [n, experts]
        scores = ops.softmax_of_top(logits, c.n_active_experts)  # [n, experts], 0 if not chosen
        return ops.experts(
            x, scores, "mlp.experts.", c.n_routed_experts, c.n_active_experts, c.expert, stored="stacked"
        )

    def expert(c, x: Data) -> Data:
        """gate · sigmoid(α · gate) · (up + 1), both limited; their columns alternate."""
        halves, out = {"experts.gate": c.d_expert, "experts.up": c.d_expert}, {"experts.down": c.d_model}
        names, stored = ("", "_bias"), {"bias": True, "transposed": True}
        gate, up = ops.fused(x, "gate_up_proj", halves, suffixes=names, groups=c.d_expert, **stored)  # [n, d_expert]
        gate = ops.activate(ops.clip(gate, None, c.limit), "silu", alpha=c.alpha)  # [n, d_expert]
        up = ops.scale_by(ops.clip(up, -c.limit, c.limit), 1.0, "add 1", shift=1.0)  # [n, d_expert]
        return ops.fused(gate * up, "down_proj", out, suffixes=names, **stored)[0]  # [n, d_model]

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)

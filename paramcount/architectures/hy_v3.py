"""Hy3: one dense layer, then layers with 192 routed experts and a shared one.

The routing bias is stored as a buffer.
"""

from paramcount.declare import Data, ops, parts, sizes


def shared_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """num_shared_experts experts as one; without any the reference takes the width of the dense layers."""
    n = js.get("num_shared_experts", 1)
    width: int = (sizes.unused(js, c) if n is None else n) * c["d_expert"] or c["d_ff"]
    return width


class HYV3(parts.AttentionBias, parts.AttentionDecoder):
    """Source: HYV3DecoderLayer and HYV3TopKRouter of the reference, modeling_hy_v3.py."""

    reference = "HYV3ForCausalLM"
    gguf = "hy_v3"
    gguf_names = {"mlp.expert_bias": "exp_probs_b"}
    reference_names = {".shared_mlp.": ".shared_experts."}
    modules = {".router.gate": (".gate",)}
    conditions = (sizes.padding_in_table(None),)
    defaults = {"d_head": 128}

    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: (0,), checked=False))
    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts", null=sizes.unused)
    n_active_experts: sizes.Natural = sizes.hf(null=sizes.unused)
    d_shared_expert: sizes.Natural = sizes.derived(shared_width)
    mlp_bias: sizes.Flag = sizes.hf()  # of the dense layers and the shared experts

    routed_scale = sizes.setting("router_scaling_factor")
    kinds = parts.layers_by_mlp
    norms_heads = True

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        options = {"activation": c.activation, "bias": c.mlp_bias}
        if kind == "dense":
            return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, **options)
        shared = parts.gated_mlp(h, "mlp.shared_mlp.", "shared_experts", c.d_shared_expert, **options)
        return x + (parts.mixture(c, h, "mlp.", router="router.gate", choose=c.choose) + shared)

    def choose(c, logits: Data) -> Data:
        return ops.route(
            logits,
            c.n_active_experts,
            "sigmoid",
            bias=parts.routing_bias(c, "mlp.expert_bias"),
            normalise=True,
            least_sum=1e-20,
            factor=c.routed_scale,
        )

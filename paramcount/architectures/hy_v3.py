"""Hy3: one dense layer, then layers with 192 routed experts and a shared one.

The routing bias is stored as a buffer.
"""

from paramcount.flow import Data, route
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_mlp
from paramcount.parts.feed_forward import gated_mlp, mixture, routing_bias
from paramcount.sizes import ConfigJson, FieldValues, Flag, Indices, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.layer_types import dense_by_type, unused


def shared_width(js: ConfigJson, c: FieldValues) -> int:
    """num_shared_experts experts as one; without any the reference takes the width of the dense layers."""
    n = js.get("num_shared_experts", 1)
    width: int = (unused(js, c) if n is None else n) * c["d_expert"] or c["d_ff"]
    return width


class HYV3(AttentionDecoder):
    """Source: HYV3DecoderLayer and HYV3TopKRouter of the reference, modeling_hy_v3.py."""

    reference = "HYV3ForCausalLM"
    gguf = "hy_v3"
    is_section_type = True
    reference_names = {".shared_mlp.": ".shared_experts."}
    modules = {".router.gate": (".gate",)}
    rotated = "d_head"
    conditions = (padding_in_table(None),)
    defaults = {"d_head": 128}

    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,), checked=False))
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", null=unused)
    n_active_experts: Natural = hf(null=unused)
    d_shared_expert: Natural = derived(shared_width)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()  # of the dense layers and the shared experts
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(11_158_840, positions=131072)
    routed_scale = setting("router_scaling_factor", default=2.826)
    kinds = layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, qk_norm=True)
        h = c.norm(x, "post_attention_layernorm")
        options = {"activation": c.activation, "bias": c.mlp_bias}
        if kind == "dense":
            return x + gated_mlp(h, "mlp.", "mlp", c.d_ff, **options)
        shared = gated_mlp(h, "mlp.shared_mlp.", "shared_experts", c.d_shared_expert, **options)
        return x + (mixture(c, h, "mlp.", router="router.gate", choose=c.choose) + shared)

    def choose(c, logits: Data) -> Data:
        rules = {"normalise": True, "factor": c.routed_scale, "least_sum": 1e-20}
        return route(logits, c.n_active_experts, "sigmoid", bias=routing_bias(c, "mlp.expert_bias"), **rules)

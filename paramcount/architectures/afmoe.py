"""Arcee's Trinity: gated attention, pre-norm and post-norm, routed and shared experts.

Only layers with a sliding window use rotary positions.
"""

from paramcount.declare import Data, ops, parts, sizes


class Afmoe(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2602.17004; AfmoeDecoderLayer and AfmoeTokenChoiceRouter of the reference.

    `scaled_embedding`: a token's row is multiplied by √d_model.
    """

    reference = "AfmoeForCausalLM"
    gguf = "afmoe"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    gguf_rope_factors = "llama3"
    adapts_experts = True
    rotated = None
    linear_routers = (".router.gate.weight",)
    float32_if_float16 = (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_mlp_layernorm",
        "post_mlp_layernorm",
        "q_norm",
        "k_norm",
        "norm",
        "expert_bias",
    )
    conditions = (sizes.padding_in_table(None), sizes.even_where_rotated("sliding_attention", named=True))
    defaults = {"d_head": 128}

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every_key("global_attn_every_n_layers", 4), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.first_dense(1, "num_dense_layers"))
    d_expert: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Natural = sizes.hf("num_experts", null=sizes.needed("num_experts"))
    n_active_experts: sizes.Natural = sizes.hf(null=sizes.needed("num_experts_per_tok"))
    n_shared_experts: sizes.Natural = sizes.hf("num_shared_experts", null=sizes.needed("num_shared_experts"))
    scaled_embedding: sizes.Flag = sizes.hf("mup_enabled", null=False)

    routed_scale = sizes.setting("route_scale", kind=sizes.FACTOR)
    kinds = parts.layers_by_type_and_mlp

    norms_heads = True

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return ops.scale_by_root(x, c.d_model) if c.scaled_embedding else x

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        sliding = word == "sliding_attention"
        h, window = c.norm(x, "input_layernorm"), c.window if sliding else None
        a = c.self_attention(h, bias=c.attention_bias, prepare=c.prepare_by(sliding), window=window)
        x = x + c.norm(a, "post_attention_layernorm")
        h = c.norm(x, "pre_mlp_layernorm")
        h = (
            parts.shared_mixture(c, h, "mlp.", router="router.gate", choose=c.choose)
            if mlp == "moe"
            else c.gated_mlp(h)
        )
        return x + c.norm(h, "post_mlp_layernorm")

    def gate_heads(c, x: Data, a: Data) -> Data:
        return parts.sigmoid_gate("self_attn.gate_proj")(x, a)

    def choose(c, logits: Data) -> Data:
        bias = parts.routing_bias(c, "mlp.expert_bias", role="parameter")
        return ops.route(
            logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True, least_sum=1e-20, factor=c.routed_scale
        )

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)

"""Arcee's Trinity: gated attention, pre-norm and post-norm, routed and shared experts.

Only layers with a sliding window use rotary positions.
"""

from paramcount.flow import Data, route, scale_by_root
from paramcount.parts.attentions import sigmoid_gate
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import routing_bias, shared_mixture
from paramcount.sizes import ABSENT, Flag, Indices, Natural, Positive, Words, derived, hf, rotary, setting
from paramcount.sizes.conditions import even_where_rotated, padding_in_table
from paramcount.sizes.derivations import SLIDING, equal_to
from paramcount.sizes.layer_types import first_dense, full_every_key, needed
from paramcount.sizes.rules import check_experts_exist, check_layer_types
from paramcount.sizes.setting_kinds import FACTOR


class Afmoe(AttentionDecoder):
    """Source: arXiv:2602.17004; AfmoeDecoderLayer and AfmoeTokenChoiceRouter of the reference.

    `scaled_embedding`: a token's row is multiplied by √d_model.
    """

    reference = "AfmoeForCausalLM"
    gguf = "afmoe"
    is_section_type = True
    adapts_experts = True
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
    conditions = (padding_in_table(None), even_where_rotated("sliding_attention", named=True))
    defaults = {"d_head": 128}

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    layer_types: Words = hf(absent=full_every_key("global_attn_every_n_layers", 4), null=ABSENT)
    window: Positive = hf()
    d_ff: Natural = hf()
    dense_layers: Indices = derived(first_dense(1, "num_dense_layers"))
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf("num_experts", null=needed("num_experts"))
    n_active_experts: Natural = hf(null=needed("num_experts_per_tok"))
    n_shared_experts: Natural = hf("num_shared_experts", null=needed("num_shared_experts"))
    attention_bias: Flag = hf()
    scaled_embedding: Flag = hf("mup_enabled", null=False)
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=16384)
    routed_scale = setting("route_scale", default=1.0, kind=FACTOR)
    kinds = layers_by_type_and_mlp

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return scale_by_root(x, c.d_model) if c.scaled_embedding else x

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        sliding = word == "sliding_attention"
        window, gate = c.window if sliding else None, sigmoid_gate("self_attn.gate_proj")
        a = c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, qk_norm=True, rotate=sliding,
            window=window, gate=gate,
        )  # fmt: skip
        x = x + c.norm(a, "post_attention_layernorm")
        h = c.norm(x, "pre_mlp_layernorm")
        h = shared_mixture(c, h, "mlp.", router="router.gate", choose=c.choose) if mlp == "moe" else c.gated_mlp(h)
        return x + c.norm(h, "post_mlp_layernorm")

    def choose(c, logits: Data) -> Data:
        bias = routing_bias(c, "mlp.expert_bias", role="parameter")
        rules = {"normalise": True, "factor": c.routed_scale, "least_sum": 1e-20}
        return route(logits, c.n_active_experts, "sigmoid", bias=bias, **rules)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", SLIDING)
        check_experts_exist(c)

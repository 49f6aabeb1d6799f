"""Kimi Linear: three layers of Kimi Delta Attention to one of MLA without positions.

Experts as in DeepSeek-V3.
"""

from paramcount.declare import Data, parts, sizes
from paramcount.errors import ParamcountError

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words
LISTS = {"full_attn_layers": "full_attention", "kda_layers": "linear_attention"}


def listed(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Layer types from linear_attn_config, which counts layers from 1. Default: every fourth is full attention."""
    config = js.get("linear_attn_config") or {}
    if not all(key in config for key in LISTS):
        return tuple(KINDS[i > 0 and i % 4 == 0] for i in sizes.per_layer(c))
    words: list[str] = [""] * len(sizes.per_layer(c))
    for key, word in LISTS.items():
        for i in config[key]:
            words[i - 1] = word
    if "" in words:
        raise ParamcountError(
            f"does not contain layer {words.index('') + 1}",
            where="linear_attn_config",
            expected="kda_layers and full_attn_layers that together contain every layer",
        )
    return tuple(words)


def latent_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if set(c["layer_types"]) & {"full_attention", "attention"}:
        sizes.latent_heads_stay_whole(32)(js, c)


class KimiLinear(parts.RoutedLatentDecoder):
    """Source: arXiv:2510.26692, section 4; KimiLinearDecoderLayer.

    The released names of the MLP in the first layer differ from those that the reference saves.
    """

    reference = "KimiLinearForCausalLM"
    gguf = "kimi-linear"
    gguf_kv_heads_by_layer = True
    is_section_type = False
    rotated = None
    tie_word_embeddings = sizes.constant(False)
    reference_names = {
        ".block_sparse_moe.": ".mlp.",
        ".self_attn.f_a_proj.": ".self_attn.forget_gate.f_a_proj.",
        ".self_attn.f_b_proj.": ".self_attn.forget_gate.f_b_proj.",
    }
    modules = {".block_sparse_moe.experts": (".mlp.experts",), ".block_sparse_moe.gate": (".mlp.gate",)}
    conditions = (
        sizes.padding_in_table(163839),
        latent_heads,
        sizes.grouped_routing(1, 1, ("num_expert_group", "n_group")),
    )

    layer_types: sizes.Words = sizes.hf(absent=listed, null=sizes.ABSENT)
    d_q_lora: sizes.Positive | None = sizes.hf(absent=None)
    d_v: sizes.Positive = sizes.hf(null=sizes.if_no_attention, late=True)
    n_linear_heads: sizes.Positive = sizes.hf("linear_attn_config.num_heads", "linear_num_heads")
    d_linear_head: sizes.Positive = sizes.hf("linear_attn_config.head_dim", "linear_head_dim")
    d_conv: sizes.Positive = sizes.hf("linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim")
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(1)))
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "num_local_experts", null=sizes.unused, late=True)
    n_active_experts: sizes.Natural = sizes.hf(
        "num_experts_per_token", "num_experts_per_tok", null=sizes.unused, late=True
    )
    n_shared_experts: sizes.Natural = sizes.hf(
        "num_shared_experts", "n_shared_experts", null=sizes.needed("num_shared_experts")
    )

    routing_bias = "block_sparse_moe.gate.e_score_correction_bias"
    norm_topk_prob = sizes.setting("moe_renormalize", "norm_topk_prob")
    n_groups = sizes.setting("num_expert_group", "n_group")
    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(x, "input_layernorm")
        if word in ("full_attention", "attention"):
            x = x + parts.latent_attention(c, h, "self_attn.", bias=c.attention_bias, turn=lambda y: y)
        else:
            x = x + parts.kimi_delta_attention(c, h, "self_attn.", rate=(1, 1, c.n_linear_heads, 1))
        h = c.norm(x, "post_attention_layernorm")
        if density == "moe":
            return x + parts.shared_mixture(c, h, "block_sparse_moe.", choose=c.choose, names=("w1", "w3", "w2"))
        # the reference saves the MLP under this name too
        return x + c.gated_mlp(h, "block_sparse_moe.")

    def unused_fields(c) -> tuple[str, ...]:
        return ("n_routed_experts", "n_active_experts") if len(c.dense_layers) == len(c.layer_types) else ()

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)

"""MiniMax-Text-01 as the reference builds it: lightning attention and softmax attention in turn, with experts.

The residual starts after the norm.
"""

from paramcount.flow import Data, Weight, route, scale_by
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_type
from paramcount.parts.feed_forward import mixture
from paramcount.parts.linear_attention import lightning_attention
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, Words, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import d_model_per_head, per_layer
from paramcount.sizes.mixers import list_unused_fields
from paramcount.sizes.rules import check_layer_types

KINDS = ("full_attention", "linear_attention", "attention", "mamba")  # the last two are the older words


def in_turn(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    return tuple(KINDS[i % 2] for i in per_layer(c))


class MiniMax(Decoder):
    """Source: arXiv:2501.08313, section 2; MiniMaxDecoderLayer of the reference."""

    reference = "MiniMaxForCausalLM"
    is_section_type = True
    task_heads = "GENERIC_SPAN"
    modules = {".block_sparse_moe.experts": (".mlp.experts",), ".block_sparse_moe.gate": (".mlp.gate",)}
    adapts_experts = True
    rotated = "d_head"
    conditions = (padding_in_table(None),)

    layer_types: Words = hf(absent=in_turn, null=ABSENT)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    window: Positive | None = hf(absent=None)
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_experts", "num_local_experts")
    n_active_experts: Natural = hf()
    block_size: Positive = hf(
        "block_size"
    )  # tokens that lightning attention takes together; its decays are stored for them
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000, positions=131072)
    attention_alpha = setting("full_attn_alpha_factor", default=1.0)  # alpha: of the residual
    attention_beta = setting("full_attn_beta_factor", default=1.0)  # beta: of what is added to it
    linear_attention_alpha = setting("linear_attn_alpha_factor", default=1.0)
    linear_attention_beta = setting("linear_attn_beta_factor", default=1.0)
    mlp_alpha = setting("mlp_alpha_factor", default=1.0)
    mlp_beta = setting("mlp_beta_factor", default=1.0)
    kinds = layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        """The residual starts after the norm."""
        h = c.norm(x, "input_layernorm")
        if kind in ("linear_attention", "mamba"):
            a = lightning_attention(c, h, "self_attn.", *c.decays("self_attn."))
            x = scale_by(h, c.linear_attention_alpha) + scale_by(a, c.linear_attention_beta)
        else:
            a = c.self_attention(h, window=c.window, keeps_all=True)
            x = scale_by(h, c.attention_alpha) + scale_by(a, c.attention_beta)
        h = c.norm(x, "post_attention_layernorm")
        y = mixture(c, h, "block_sparse_moe.", names=("w1", "w3", "w2"), choose=c.choose)
        return scale_by(h, c.mlp_alpha) + scale_by(y, c.mlp_beta)

    def choose(c, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=True)

    def decays(c, prefix: str) -> tuple[Weight, ...]:
        """The decay of each head per token, and those derived from it for the tokens of a block."""
        shapes = {
            "slope_rate": (c.n_heads, 1, 1),
            "query_decay": (c.n_heads, c.block_size, 1),
            "key_decay": (c.n_heads, c.block_size, 1),
            "diagonal_decay": (1, c.n_heads, c.block_size, c.block_size),
        }
        return tuple(Weight(prefix + name, "mixer.state", shape, role="buffer") for name, shape in shapes.items())

    def unused_fields(c) -> tuple[str, ...]:
        return list_unused_fields(c.layer_types)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)

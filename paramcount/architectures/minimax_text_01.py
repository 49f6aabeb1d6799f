"""MiniMax-Text-01 and MiniMax-M1: lightning attention, softmax attention in every eighth layer, large experts."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

KINDS = ("linear_attention", "full_attention")


def layer_kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """attn_type_list: 0 for lightning attention, any other number for softmax attention.

    What stands behind the last layer is not read.
    """
    found = js["attn_type_list"]
    return tuple(KINDS[found[i] != 0] for i in sizes.per_layer(c))


class MiniMaxText01(parts.Decoder):
    """Source: arXiv:2501.08313, section 2; MiniMaxText01DecoderLayer in modeling_minimax_text_01.py of
    MiniMaxAI/MiniMax-Text-01.
    """

    reference = "MiniMaxText01ForCausalLM of MiniMaxAI/MiniMax-Text-01"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32}

    layer_types: sizes.Words = sizes.derived(layer_kinds)
    n_heads: sizes.Positive = sizes.hf(absent=32)
    n_kv_heads: sizes.Positive = sizes.hf(absent=8, null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    d_rope: sizes.Positive = sizes.hf("rotary_dim", absent=sizes.equal_to("d_head"))
    d_expert: sizes.Natural = sizes.hf("intermediate_size", absent=14336)
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", absent=8)
    n_active_experts: sizes.Natural = sizes.hf(absent=2)
    shared_mlp: sizes.Flag = sizes.derived(
        lambda js, c: js.get("shared_intermediate_size", 0) > 0
    )  # its width is d_expert whatever that says
    norm_in_residual: sizes.Flag = sizes.hf("postnorm", absent=False)

    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.rotary(1_000_000, positions=131072)
    attention_alpha = sizes.setting("layernorm_full_attention_alpha", default=1.0)  # of the residual
    attention_beta = sizes.setting("layernorm_full_attention_beta", default=1.0)  # of what is added to it
    linear_attention_alpha = sizes.setting("layernorm_linear_attention_alpha", default=1.0)
    linear_attention_beta = sizes.setting("layernorm_linear_attention_beta", default=1.0)
    mlp_alpha = sizes.setting("layernorm_mlp_alpha", default=1.0)
    mlp_beta = sizes.setting("layernorm_mlp_beta", default=1.0)
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        x = h if c.norm_in_residual else x
        if kind == "linear_attention":
            a = parts.lightning_attention(c, h, "self_attn.")
            x = ops.scale_by(x, c.linear_attention_alpha) + ops.scale_by(a, c.linear_attention_beta)
        else:
            a = c.self_attention(h)
            x = ops.scale_by(x, c.attention_alpha) + ops.scale_by(a, c.attention_beta)
        h = c.norm(x, "post_attention_layernorm")
        x = h if c.norm_in_residual else x
        return ops.scale_by(x, c.mlp_alpha) + ops.scale_by(c.feed_forward(h), c.mlp_beta)

    def rotate(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope)

    def feed_forward(c, x: Data) -> Data:
        """Experts; in a config that asks for it, mixed with an MLP that all tokens use, in a learned ratio."""
        routed = parts.mixture(c, x, "block_sparse_moe.", names=("w1", "w3", "w2"), choose=c.choose)
        if not c.shared_mlp:
            return routed
        share = ops.activate(ops.linear(x, "coefficient", "router", 1), "sigmoid")
        shared = parts.gated_mlp(x, "shared_mlp.", "shared_experts", c.d_expert, activation=c.activation)
        return ops.scale(routed, ops.scale_by(share, -1.0, "1 − x", shift=1.0)) + ops.scale(shared, share)

    def choose(c, logits: Data) -> Data:
        return ops.softmax_of_top(logits, c.n_active_experts)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        sizes.check_at_most(c, "d_rope", "d_head")
        sizes.check_even(c, "d_rope")
        if c.n_layers == 1:
            raise ParamcountError(
                "= 1, for which the decay of lightning attention is undefined",
                where=FieldName("n_layers"),
                expected="2 or more",
            )


class MiniMaxM1(MiniMaxText01):
    """Source: arXiv:2506.13585; modeling_minimax_m1.py of MiniMaxAI/MiniMax-M1-80k: the same layers."""

    reference = "MiniMaxM1ForCausalLM of MiniMaxAI/MiniMax-M1-80k"
    model_types = ("minimax_m1",)

"""MiniMax-Text-01 as the reference builds it: lightning attention and softmax attention in turn, with experts.

The residual starts after the norm.
"""

from paramcount.declare import Data, ops, parts, sizes

KINDS = ("full_attention", "linear_attention", "attention", "mamba")  # the last two are the older words


class MiniMax(parts.Decoder):
    """Source: arXiv:2501.08313, section 2; MiniMaxDecoderLayer of the reference."""

    reference = "MiniMaxForCausalLM"
    is_section_type = True
    task_heads = "GENERIC_SPAN"
    modules = {".block_sparse_moe.experts": (".mlp.experts",), ".block_sparse_moe.gate": (".mlp.gate",)}
    adapts_experts = True
    rotated = "d_head"
    conditions = (sizes.padding_in_table(None),)

    layer_types: sizes.Words = sizes.hf(absent=sizes.words_by(lambda i, n: i % 2, KINDS), null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    window: sizes.Positive | None = sizes.hf(absent=None)
    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "num_local_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    block_size: sizes.Positive = sizes.hf(
        "block_size"
    )  # tokens that lightning attention takes together; its decays are stored for them

    rope = sizes.rotary()
    attention_alpha = sizes.setting("full_attn_alpha_factor", default=1.0)  # alpha: of the residual
    attention_beta = sizes.setting("full_attn_beta_factor", default=1.0)  # beta: of what is added to it
    linear_attention_alpha = sizes.setting("linear_attn_alpha_factor", default=1.0)
    linear_attention_beta = sizes.setting("linear_attn_beta_factor", default=1.0)
    mlp_alpha = sizes.setting("mlp_alpha_factor", default=1.0)
    mlp_beta = sizes.setting("mlp_beta_factor", default=1.0)
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        """The residual starts after the norm."""
        h = c.norm(x, "input_layernorm")
        if kind in ("linear_attention", "mamba"):
            a = parts.lightning_attention(c, h, "self_attn.", *c.decays("self_attn."))
            x = ops.scale_by(h, c.linear_attention_alpha) + ops.scale_by(a, c.linear_attention_beta)
        else:
            a = c.self_attention(h, mix=c.attend_in_window)
            x = ops.scale_by(h, c.attention_alpha) + ops.scale_by(a, c.attention_beta)
        h = c.norm(x, "post_attention_layernorm")
        y = parts.mixture(c, h, "block_sparse_moe.", names=("w1", "w3", "w2"), choose=c.choose)
        return ops.scale_by(h, c.mlp_alpha) + ops.scale_by(y, c.mlp_beta)

    def attend_in_window(c, q: Data, k: Data, v: Data) -> Data:
        """The cache keeps all tokens."""
        return ops.attend(q, ops.cache(k), ops.cache(v), mask=ops.see_earlier(c.window))  # [n, n_heads, d_head]

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax", normalise=True)

    def decays(c, prefix: str) -> tuple[ops.Weight, ...]:
        """The decay of each head per token, and those derived from it for the tokens of a block."""
        shapes = {
            "slope_rate": (c.n_heads, 1, 1),
            "query_decay": (c.n_heads, c.block_size, 1),
            "key_decay": (c.n_heads, c.block_size, 1),
            "diagonal_decay": (1, c.n_heads, c.block_size, c.block_size),
        }
        return tuple(ops.Weight(prefix + name, "mixer.state", shape, role="buffer") for name, shape in shapes.items())

    def unused_fields(c) -> tuple[str, ...]:
        return sizes.list_unused_fields(c.layer_types)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)

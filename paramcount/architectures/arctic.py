"""Arctic: 128 experts that read a layer's input, in parallel with attention followed by a small dense MLP."""

from paramcount.declare import Data, ops, parts, sizes

WS = ("w1", "w3", "w2")


def between_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    every = sizes.check_no_types(js, "moe_layer_frequency", 2)
    return tuple(i for i in sizes.per_layer(c) if (i + 1) % every)


class Arctic(parts.EqualHeads, parts.Decoder):
    """Source: ArcticDecoderLayer in modeling_arctic.py of Snowflake/snowflake-arctic-instruct. The small MLP is as wide
    as the model.
    """

    reference = "ArcticForCausalLM of Snowflake/snowflake-arctic-instruct"
    gguf = "arctic"
    gguf_names = {"post_attention_layernorm": "ffn_norm_exps"}
    rotated = "d_head"
    defaults = {"vocab_size": 32000, "d_model": 4096, "n_layers": 32}

    dense_layers: sizes.Indices = sizes.derived(between_experts)
    n_heads: sizes.Positive = sizes.hf(absent=32)
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    window: sizes.Positive | None = sizes.hf(absent=None)
    d_expert: sizes.Natural = sizes.hf("intermediate_size", absent=14336)  # also of the MLP in a layer without experts
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", absent=8)
    n_active_experts: sizes.Natural = sizes.hf(absent=1)
    residual_mlp: sizes.Flag = sizes.hf("parallel_attn_mlp_res", absent=False)

    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.rotary(1_000_000, positions=4096)
    kinds = parts.layers_by_mlp

    def layer(c, x: Data, kind: str) -> Data:
        attended = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        if kind == "moe" and c.residual_mlp:
            h = c.norm(attended, "residual_layernorm")
            y = parts.gated_mlp(h, "residual_mlp.", "mlp", c.d_model, names=WS, activation=c.activation)
            return attended + y + c.moe(c.norm(x, "post_attention_layernorm"))
        h = c.norm(attended, "post_attention_layernorm")
        if kind == "moe":
            return attended + c.moe(h)
        return attended + parts.gated_mlp(
            h, "block_sparse_moe.mlp.", "mlp", c.d_expert, names=WS, activation=c.activation
        )

    def moe(c, x: Data) -> Data:
        return parts.mixture(c, x, "block_sparse_moe.", names=WS, choose=c.choose)

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax", normalise=True)

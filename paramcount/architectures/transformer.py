"""flash-linear-attention's Transformer: Llama's layers, in a window and with norms of queries and keys if wanted."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

HEAD_EPS = 1e-5  # of the norms of q and k, whatever norm_eps is


class FlaTransformer(parts.FlaDecoder):
    """Source: TransformerBlock in fla/models/transformer/modeling_transformer.py of fla-org/flash-linear-attention."""

    reference = "TransformerForCausalLM of fla-org/flash-linear-attention"
    rotated: ClassVar[str | None] = "d_head"

    n_heads: sizes.Positive = sizes.hf("num_heads", absent=32)
    n_kv_heads: sizes.Positive = sizes.hf("num_kv_heads", absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    attention_bias: sizes.Flag = sizes.hf("qkv_bias", absent=False)
    qk_norm: sizes.Flag = sizes.hf("qk_norm", absent=False)
    window: sizes.Positive | None = sizes.hf("window_size", absent=None)
    attention_layers = sizes.constant(())
    n_attention_heads = sizes.constant(None)
    n_attention_kv_heads = sizes.constant(None)
    d_attention_head = sizes.constant(None)

    rope = sizes.setting(default=lambda config, c: ops.Rope(config.get("rope_theta", 10_000.0)))

    def mixer(c, x: Data, prefix: str, *reads: Data) -> Data:
        return c.self_attention(x, prefix, bias=c.attention_bias, o_bias=False, window=c.window)

    def normalise_heads(c, q: Data, k: Data) -> tuple[Data, Data]:
        if not c.qk_norm:
            return q, k
        return ops.rms_norm(q, "attn.q_norm", HEAD_EPS), ops.rms_norm(k, "attn.k_norm", HEAD_EPS)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_divides(c, "n_kv_heads", "n_heads")

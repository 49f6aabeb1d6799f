"""GlubLM: Llama's layers with q, k and v in one matrix, and a token embedding that is scaled by √d_model."""

from math import sqrt

from paramcount.declare import Data, ops, parts, sizes


class GlubLM(parts.EqualHeads):
    """Source: src/glublm/model.py of github Den-Sec/glublm."""

    reference = "GlubLM of Den-Sec/glublm"
    prefix = ""
    rotated = "d_head"
    names = ("embedding", "blocks", "final_norm")

    d_model: sizes.Positive = sizes.hf("d_model", absent=640)
    vocab_size: sizes.Positive = sizes.hf(absent=5120)
    n_layers: sizes.Natural = sizes.hf("n_layers", absent=8)
    n_heads: sizes.Positive = sizes.hf("n_heads", absent=10)
    d_ff: sizes.Natural = sizes.hf("ffn_hidden", absent=1280)
    tie_word_embeddings: sizes.Flag = sizes.hf("tie_embeddings", absent=True)

    activation = "silu"
    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.setting(default=lambda config, c: ops.Rope(config.get("rope_theta", 10_000.0)))
    embedding_scale = sizes.setting(default=lambda config, c: sqrt(c.d_model))

    def embed(c, tokens: Data) -> Data:
        return ops.scale_by(super().embed(tokens), c.embedding_scale)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "norm1")
        q, k, v = ops.fused(h, "attn.qkv_proj", dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), (c.n_heads, c.d_head)))
        a = ops.attend_causally(*c.turn_heads(q, k), v)  # [n, n_heads, d_head]
        x = x + ops.linear(a, "attn.out_proj", "output_projection", c.d_model)
        return x + c.gated_mlp(c.norm(x, "norm2"), "ffn.")

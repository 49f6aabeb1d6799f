"""MiniCPM3: latent attention as in DeepSeek-V2 in every layer.

Embeddings, residual branches and the last hidden state are scaled.
"""

from math import sqrt

from paramcount.declare import Data, ops, parts, sizes


def scale_residual(config: sizes.Config, c: "MiniCPM3") -> float:
    depth = config.get("scale_depth", 1.4)
    return 1.0 if depth is None else float(depth / sqrt(c.n_layers))


def scale_output(config: sizes.Config, c: "MiniCPM3") -> float:
    base = config.get("dim_model_base", 256)
    return 1.0 if base is None else float(base / c.d_model)


class MiniCPM3(parts.LatentDecoder):
    """Source: modeling_minicpm3.py of the reference, MiniCPM3DecoderLayer; the scales arXiv:2404.06395."""

    reference = "MiniCPM3ForCausalLM"
    gguf = "minicpm3"
    gguf_rope_factors = "longrope"
    task_heads = "SCORED"
    conditions = (sizes.latent_heads_stay_whole(40), sizes.padding_in_table(None))

    d_v: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    mlp_bias: sizes.Flag = sizes.hf()

    rope = sizes.rotary()
    pairing = sizes.setting(default="halves")
    embedding_scale = sizes.setting("scale_emb", default=12.0)
    residual_scale = sizes.setting(default=scale_residual)
    output_scale = sizes.setting(default=scale_output)
    check = sizes.check_heads_divide

    def embed(c, tokens: Data) -> Data:
        return ops.scale_by(super().embed(tokens), c.embedding_scale, "times scale_emb")

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        h = parts.latent_attention(c, h, "self_attn.", bias=c.attention_bias)
        x = x + ops.scale_by(h, c.residual_scale, "times scale_depth / √n_layers")
        h = c.norm(x, "post_attention_layernorm")
        h = c.gated_mlp(h, bias=c.mlp_bias)
        return x + ops.scale_by(h, c.residual_scale, "times scale_depth / √n_layers")

    def head(c, x: Data) -> Data:
        return super().head(ops.scale_by(x, c.output_scale, "times dim_model_base / d_model"))

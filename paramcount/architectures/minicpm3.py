"""MiniCPM3: latent attention as in DeepSeek-V2 in every layer.

Embeddings, residual branches and the last hidden state are scaled.
"""

from math import sqrt

from paramcount.flow import Data, scale_by
from paramcount.parts.latent_decoder import LatentDecoder
from paramcount.parts.mla import latent_attention
from paramcount.sizes import ABSENT, Flag, Natural, Positive, d_model_per_head, hf, rotary, setting
from paramcount.sizes.conditions import latent_heads_stay_whole, padding_in_table
from paramcount.sizes.rules import check_divides
from paramcount.sizes.setting_fields import Config


def scale_residual(config: Config, c: "MiniCPM3") -> float:
    depth = config.get("scale_depth", 1.4)
    return 1.0 if depth is None else float(depth / sqrt(c.n_layers))


def scale_output(config: Config, c: "MiniCPM3") -> float:
    base = config.get("dim_model_base", 256)
    return 1.0 if base is None else float(base / c.d_model)


class MiniCPM3(LatentDecoder):
    """Source: modeling_minicpm3.py of the reference, MiniCPM3DecoderLayer; the scales arXiv:2404.06395."""

    reference = "MiniCPM3ForCausalLM"
    gguf = "minicpm3"
    is_section_type = True
    task_heads = "SCORED"
    rotated = "d_rope"
    conditions = (latent_heads_stay_whole(40), padding_in_table(None))

    n_heads: Positive = hf()
    d_q_lora: Positive | None = hf()
    d_kv_lora: Positive = hf()
    d_nope: Positive = hf()
    d_rope: Positive = hf()
    d_v: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=32768)
    pairing = setting(default="halves")
    embedding_scale = setting("scale_emb", default=12.0)
    residual_scale = setting(default=scale_residual)
    output_scale = setting(default=scale_output)

    def embed(c, tokens: Data) -> Data:
        return scale_by(super().embed(tokens), c.embedding_scale, "times scale_emb")

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        h = latent_attention(c, h, "self_attn.", bias=c.attention_bias, scale=c.attention_scale)
        x = x + scale_by(h, c.residual_scale, "times scale_depth / √n_layers")
        h = c.norm(x, "post_attention_layernorm")
        h = c.gated_mlp(h, bias=c.mlp_bias)
        return x + scale_by(h, c.residual_scale, "times scale_depth / √n_layers")

    def head(c, x: Data) -> Data:
        return super().head(scale_by(x, c.output_scale, "times dim_model_base / d_model"))

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")

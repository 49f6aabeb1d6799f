"""CPM-Ant: Llama-like layers over tokens, prompts and segments.

All layers share one table of relative positions and segment pairs.
"""

from typing import Any

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, Weight, layers, linear, lookup, norm
from paramcount.parts.attentions import relative
from paramcount.parts.classic import multi_head
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Positive, Sizes, hf
from paramcount.sizes.conditions import buckets_reach

QKVO = ("project_q", "project_k", "project_v", "attention_out")


class CpmAnt(Sizes):
    """Source: modeling_cpmant.py of the reference. The head is never tied: the embedding has more rows, for prompts."""

    reference = "CpmAntForCausalLM"
    conditions = (buckets_reach("position_bias_num_buckets", "position_bias_max_distance", 2048, one_sided=False),)

    vocab_size: Positive = hf(absent=30720)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=48)
    n_heads: Positive = hf(absent=32)
    d_head: Positive = hf("dim_head", absent=128)
    d_ff: Positive = hf("dim_ff", absent=10240)
    n_buckets: Positive = hf("position_bias_num_buckets", absent=512)
    n_prompts: Positive = hf("prompt_types", absent=32)
    prompt_length: Positive = hf("prompt_length", absent=32)
    n_segments: Positive = hf("segment_types", absent=32)

    def forward(c, tokens: Data) -> Data:
        prefix = "cpmant."
        x = lookup(
            tokens,
            prefix + "input_embedding.weight",
            "embedding",
            c.vocab_size + c.n_prompts * c.prompt_length,
            c.d_model,
        )
        x = x + lookup(tokens, prefix + "segment_embedding.weight", "other_embedding", c.n_segments, c.d_model)
        table = Weight(
            prefix + "position_bias.relative_attention_bias",
            "position",
            (c.n_segments * c.n_segments + c.n_buckets, c.n_heads),
        )
        bias = Data(
            "lookup",
            (Data("relative positions", (tokens,), tokens.shape),),
            (*tokens.shape, c.n_heads),
            (table,),
        )
        x = layers(
            x,
            prefix + "encoder.layers.{layer}.",
            [("layer", c.n_layers)],
            lambda kind, x, bias: layer(c, x, bias),
            reads=(bias,),
        )
        return linear(norm(x, prefix + "encoder.output_layernorm"), "lm_head", "lm_head", c.vocab_size)

    def check(c) -> None:
        for name in ("n_prompts", "n_segments"):
            if getattr(c, name) < 3:
                raise ParamcountError(
                    f"= {getattr(c, name)}, but text tokens use index 2", where=FieldName(name), expected="at least 3"
                )


def layer(c: Any, x: Data, bias: Data) -> Data:
    def turn(q: Data, k: Data, v: Data) -> tuple[Data, Data, Data]:
        return relative(q, bias), k, v

    h = norm(x, "self_att.layernorm_before_attention")
    x = x + multi_head(c, h, "self_att.self_attention.", QKVO, bias=False, turn=turn)
    return x + gated_mlp(
        norm(x, "ffn.layernorm_before_ffn"),
        "ffn.ffn.",
        "mlp",
        c.d_ff,
        activation="gelu",
        names=("w_in.w_0", "w_in.w_1", "w_out"),
    )

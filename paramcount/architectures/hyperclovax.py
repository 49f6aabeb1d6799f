"""HyperCLOVA X SEED: the Llama layout with fixed multipliers and norms behind attention and MLP too."""

from functools import partial

from paramcount.architectures.llama import Llama
from paramcount.declare import Data, ops, sizes


class HyperClovaX(Llama):
    """Source: modeling_hyperclovax.py of the reference."""

    reference = "HyperCLOVAXForCausalLM"

    post_norm: sizes.Flag = sizes.hf("use_post_norm")

    embedding_multiplier = sizes.setting("embedding_multiplier")
    residual_multiplier = sizes.setting("residual_multiplier")
    attention_multiplier = sizes.setting("attention_multiplier", default=lambda config, c: float(c.d_head**-0.5))
    logit_scale = sizes.setting("logits_scaling")

    def to_first_layer(c, x: Data, tokens: Data) -> Data:
        return ops.scale_by(x, c.embedding_multiplier, "times embedding_multiplier")

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        h = c.self_attention(h, bias=c.attention_bias, mix=partial(ops.attend_causally, scale=c.attention_multiplier))
        x = x + c.shrink(c.norm(h, "post_norm1") if c.post_norm else h)
        h = c.norm(x, "post_attention_layernorm")
        h = c.gated_mlp(h, bias=c.mlp_bias)
        return x + c.shrink(c.norm(h, "post_norm2") if c.post_norm else h)

    def shrink(c, x: Data) -> Data:
        return ops.scale_by(x, c.residual_multiplier, "times residual_multiplier")

    def head(c, x: Data) -> Data:
        return ops.scale_by(super().head(x), c.logit_scale, "times logits_scaling")

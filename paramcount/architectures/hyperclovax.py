"""HyperCLOVA X SEED: the Llama layout with fixed multipliers and norms behind attention and MLP too."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.llama import Llama
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, pre_norm, sandwich, usual_layer
from paramcount.sizes import Flag, hf


class HyperClovaX(Llama):
    """Source: modeling_hyperclovax.py of the reference."""

    reference: ClassVar[str] = "HyperCLOVAXForCausalLM"

    post_norm: Flag = hf("use_post_norm", absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, arrange=four_norms if c.post_norm else pre_norm, bias=c.attention_bias, mlp_bias=c.mlp_bias
    )


def four_norms(x: Data, attention: Any, feed_forward: Any, *, bias: bool) -> Data:
    return sandwich(
        x, attention, feed_forward, ("input_layernorm", "post_norm1", "post_attention_layernorm", "post_norm2")
    )

"""CodeGen: GPT-J with q, k and v in one matrix, stored in the order q, v, k."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.gptj import GPTJ, mlp
from paramcount.errors import ParamcountError
from paramcount.flow import Data, attend, fused, linear
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, parallel
from paramcount.sizes import Positive, hf


class CodeGen(GPTJ):
    """Source: arXiv:2203.13474, section 2.2."""

    reference: ClassVar[str] = "CodeGenForCausalLM"

    n_positions: Positive = hf(
        "max_position_embeddings", "n_positions", absent=2048
    )  # no table: only the masks of older files are as large

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c, tokens, layer, prefix="transformer.", names=("wte", "h", "ln_f"), norm_bias=True, head_bias=True
        )

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        return (("transformer.h.{layer}.attn.causal_mask", (1, 1, c.n_positions, c.n_positions), c.n_layers),)

    def check(c) -> None:
        super().check()
        if c.n_heads % 4:  # the fused matrix is laid out for four devices
            raise ParamcountError(f"= {c.n_heads}", where="n_heads", expected="a multiple of 4")


def layer(c: Any, kind: str, x: Data) -> Data:
    return parallel(x, lambda h: attention(c, h), lambda h: mlp(c, h), ("ln_1",), bias=True)


def attention(c: Any, x: Data) -> Data:
    heads = (c.n_heads, c.d_head)
    q, v, k = fused(x, "attn.qkv_proj", {"qkv.q": heads, "qkv.v": heads, "qkv.k": heads})
    return linear(
        attend(partial_rope(q, c.d_rope), partial_rope(k, c.d_rope), v), "attn.out_proj", "output_projection", c.d_model
    )

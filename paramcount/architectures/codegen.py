"""CodeGen: GPT-J with q, k and v in one matrix, stored in the order q, v, k."""

from paramcount.architectures.gptj import GPTJ
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, attend, fused, linear
from paramcount.sizes import Buffers, Positive, hf


class CodeGen(GPTJ):
    """Source: arXiv:2203.13474, section 2.2; CodeGenBlock of the reference."""

    reference = "CodeGenForCausalLM"

    n_positions: Positive = hf(
        "max_position_embeddings", "n_positions", absent=2048
    )  # no table: only the masks of older files are as large

    def attention(c, x: Data) -> Data:
        """The matrix is laid out for four devices: each has the q, then the v, then the k of its heads."""
        heads = (c.n_heads, c.d_head)
        q, v, k = fused(x, "attn.qkv_proj", {"qkv.q": heads, "qkv.v": heads, "qkv.k": heads}, groups=4)
        a = attend(c.rotate(q), c.rotate(k), v)
        return linear(a, "attn.out_proj", "output_projection", c.d_model)

    def legacy_buffers(c) -> Buffers:
        return (("transformer.h.{layer}.attn.causal_mask", (1, 1, c.n_positions, c.n_positions), c.n_layers),)

    def check(c) -> None:
        super().check()
        if c.n_heads % 4:
            raise ParamcountError(f"= {c.n_heads}", where=FieldName("n_heads"), expected="a multiple of 4")

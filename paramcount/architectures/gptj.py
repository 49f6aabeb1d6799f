"""GPT-J: parallel attention and MLP after one norm, rotary positions on part of each head, an LM head with a bias."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention, partial_rope
from paramcount.parts.decoders import decoder, parallel
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_at_most, check_heads_fill


class GPTJ(Sizes):
    """Source: modeling_gptj.py of the reference."""

    reference: ClassVar[str] = "GPTJForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"

    vocab_size: Positive = hf(absent=50400)
    d_model: Positive = hf("hidden_size", "n_embd", absent=4096)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=28)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_rope: Positive = hf("rotary_dim", absent=64)
    d_ff: Positive = hf("n_inner", absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c, tokens, layer, prefix="transformer.", names=("wte", "h", "ln_f"), norm_bias=True, head_bias=True
        )

    def check(c) -> None:
        check_heads_fill(c)
        check_at_most(c, "d_rope", "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    return parallel(x, lambda h: attend(c, h), lambda h: mlp(c, h), ("ln_1",), bias=True)


def attend(c: Any, x: Data) -> Data:
    return attention(
        c, x, "attn.", o_name="out_proj", prepare=lambda q, k: (partial_rope(q, c.d_rope), partial_rope(k, c.d_rope))
    )


def mlp(c: Any, x: Data) -> Data:
    return plain_mlp(x, ("mlp.fc_in", "mlp.fc_out"), "mlp", c.d_ff, bias=True)

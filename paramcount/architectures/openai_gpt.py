"""GPT-1: the layers of GPT-2 with the norms behind instead of before, and none at the end."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data, layers, lookup, norm
from paramcount.parts.attentions import causal_masks, gpt_attention
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gpt_mlp
from paramcount.sizes import Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


class OpenAIGPT(Sizes):
    """Source: Radford et al. 2018, section 3.1."""

    reference: ClassVar[str] = "OpenAIGPTLMHeadModel"

    vocab_size: Positive = hf(absent=40478)
    n_positions: Positive = hf("max_position_embeddings", "n_positions", absent=512)
    d_model: Positive = hf("hidden_size", "n_embd", absent=768)
    n_layers: Positive = hf("num_hidden_layers", "n_layer", absent=12)
    n_heads: Positive = hf("num_attention_heads", "n_head", absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = derived(lambda js, c: 4 * c["d_model"])
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        x = lookup(tokens, "tokens_embed.weight", "embedding", c.vocab_size, c.d_model)
        x = x + lookup(tokens, "positions_embed.weight", "position", c.n_positions, c.d_model)
        x = layers(x, "h.{layer}.", [("layer", c.n_layers)], lambda kind, x: layer(c, x))
        return head(c, x, "tokens_embed.weight")

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        return causal_masks(c)

    def check(c) -> None:
        check_heads_fill(c)
        if c.d_ff != 4 * c.d_model:
            found, sizes = f"= {c.d_ff} is not 4 × d_model = {4 * c.d_model}", (c.d_ff, 4 * c.d_model)
            raise ParamcountError(found, where="d_ff", expected=f"{4 * c.d_model}", sizes=sizes)


def layer(c: Any, x: Data) -> Data:
    x = norm(x + gpt_attention(c, x), "ln_1", bias=True)
    return norm(x + gpt_mlp(c, x), "ln_2", bias=True)

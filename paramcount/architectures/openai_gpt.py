"""GPT-1: the layers of GPT-2 with the norms behind instead of before, and none at the end."""

from collections.abc import Mapping
from typing import Any

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, layer_norm, layers, lookup
from paramcount.parts.attentions import causal_masks, gpt_attention
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gpt_mlp
from paramcount.sizes import Buffers, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf, setting
from paramcount.sizes.rules import check_heads_fill


def gpt_activation(config: Mapping[str, Any], c: Any) -> str:
    """Source: ACT_FNS in modeling_openai.py of the reference: its "gelu" is the one with tanh."""
    name = str(config.get("afn", "gelu"))
    return {"gelu": "gelu_new", "swish": "silu"}.get(name, name)


class OpenAIGPT(Sizes):
    """Source: Radford et al. 2018, section 3.1."""

    reference = "OpenAIGPTLMHeadModel"
    model_types = ("openai-gpt",)
    task_heads = "GPT_HEADS"
    reference_names = {"": "transformer.", "lm_head.": "lm_head."}

    vocab_size: Positive = hf()
    n_positions: Positive = hf("max_position_embeddings", "n_positions")
    d_model: Positive = hf("hidden_size", "n_embd")
    n_layers: Natural = hf("num_hidden_layers", "n_layer")
    n_heads: Positive = hf("num_attention_heads", "n_head")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = derived(lambda js, c: 4 * c["d_model"])
    tie_word_embeddings: Flag = hf()

    activation = setting(default=gpt_activation)
    norm_eps = setting("layer_norm_epsilon", default=1e-5)

    def forward(c, tokens: Data) -> Data:
        x = lookup(tokens, "tokens_embed.weight", "embedding", c.vocab_size, c.d_model)
        x = x + lookup(tokens, "positions_embed.weight", "position", c.n_positions, c.d_model, index="positions")
        x = layers(x, "h.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return head(c, x, "tokens_embed.weight")

    def layer(c, x: Data) -> Data:
        x = layer_norm(x + gpt_attention(c, x), "ln_1", c.norm_eps)
        return layer_norm(x + gpt_mlp(c, x), "ln_2", c.norm_eps)

    def legacy_buffers(c) -> Buffers:
        return causal_masks(c)

    def check(c) -> None:
        check_heads_fill(c)
        if c.d_ff != 4 * c.d_model:
            found, sizes = (
                f"= {c.d_ff} is not 4 × " + FieldName("d_model") + f" = {4 * c.d_model}",
                (c.d_ff, 4 * c.d_model),
            )
            raise ParamcountError(found, where=FieldName("d_ff"), expected=f"{4 * c.d_model}", sizes=sizes)

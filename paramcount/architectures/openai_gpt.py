"""GPT-1: the layers of GPT-2 with the norms behind instead of before, and none at the end."""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def gpt_activation(config: Mapping[str, Any], c: Any) -> str:
    """Source: ACT_FNS in modeling_openai.py of the reference: its "gelu" is the one with tanh."""
    name = str(config.get("afn", "gelu"))
    return {"gelu": "gelu_new", "swish": "silu"}.get(name, name)


class OpenAIGPT(sizes.Sizes):
    """Source: Radford et al. 2018, section 3.1."""

    reference = "OpenAIGPTLMHeadModel"
    model_types = ("openai-gpt",)
    task_heads = "GPT_HEADS"
    reference_names = {"": "transformer.", "lm_head.": "lm_head."}

    vocab_size: sizes.Positive = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings", "n_positions")
    d_model: sizes.Positive = sizes.hf("hidden_size", "n_embd")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "n_layer")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "n_head")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.derived(lambda js, c: 4 * c["d_model"])
    tie_word_embeddings: sizes.Flag = sizes.hf()

    activation = sizes.setting(default=gpt_activation)
    norm_eps = sizes.setting("layer_norm_epsilon")

    def forward(c, tokens: Data) -> Data:
        x = ops.lookup(tokens, "tokens_embed.weight", "embedding", c.vocab_size, c.d_model)
        x = x + ops.lookup_position(tokens, "positions_embed.weight", c.n_positions, c.d_model)
        x = ops.layers(x, "h.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return parts.head(c, x, "tokens_embed.weight")

    def layer(c, x: Data) -> Data:
        x = ops.layer_norm(x + parts.gpt_attention(c, x), "ln_1", c.norm_eps)
        return ops.layer_norm(x + parts.gpt_mlp(c, x), "ln_2", c.norm_eps)

    def legacy_buffers(c) -> sizes.Buffers:
        return parts.causal_masks(c)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.d_ff != 4 * c.d_model:
            found, widths = (
                f"= {c.d_ff} is not 4 × " + FieldName("d_model") + f" = {4 * c.d_model}",
                (c.d_ff, 4 * c.d_model),
            )
            raise ParamcountError(found, where=FieldName("d_ff"), expected=f"{4 * c.d_model}", sizes=widths)

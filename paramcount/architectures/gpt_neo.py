"""GPT-Neo: GPT-2 with every second layer looking back over a window, and no bias on q, k and v."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, layers, lookup, norm
from paramcount.parts.attentions import attention, unrotated
from paramcount.parts.decoders import head, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, MOST_NAMED, Flag, Positive, Sizes, Words, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill, check_layer_types

KINDS = ("global", "local")


def expanded(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """[[["global", "local"], 12]]: these words, in this order, twelve times."""
    words: list[str] = []
    runs: Any = js.get("attention_types")
    if runs is None:
        runs = [[KINDS, 12]]
    for run, times in runs:
        if len(words) + len(run) * times > MOST_NAMED:
            raise ParamcountError(
                f"= {describe_value(runs)}", where="attention_types", expected=f"at most {MOST_NAMED:,} layers"
            )
        words += list(run) * times
    return tuple(words)


class GPTNeo(Sizes):
    """Source: modeling_gpt_neo.py of the reference."""

    reference: ClassVar[str] = "GPTNeoForCausalLM"

    vocab_size: Positive = hf(absent=50257)
    n_positions: Positive = hf("max_position_embeddings", absent=2048)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf("num_hidden_layers", "num_layers", absent=24)
    attention_layers: Words = hf("attention_layers", absent=expanded)
    window: Positive = hf("window_size", absent=256)
    n_heads: Positive = hf("num_attention_heads", "num_heads", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        x = lookup(tokens, "transformer.wte.weight", "embedding", c.vocab_size, c.d_model)
        x = x + lookup(tokens, "transformer.wpe.weight", "position", c.n_positions, c.d_model)
        x = layers(
            x, "transformer.h.{layer}.", [(kind, 1) for kind in c.attention_layers], lambda kind, x: layer(c, kind, x)
        )
        return head(c, norm(x, "transformer.ln_f", bias=True), "transformer.wte.weight")

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        """Masks of the layers that look back on everything."""
        shape = (1, 1, c.n_positions, c.n_positions)
        return tuple(
            (f"transformer.h.{i}.attn.attention.bias", shape, 1)
            for i, kind in enumerate(c.attention_layers)
            if kind == KINDS[0]
        )

    def check(c) -> None:
        check_heads_fill(c)
        check_layer_types(c, "attention_layers", "n_layers", KINDS)


def layer(c: Any, kind: str, x: Data) -> Data:
    window = c.window if kind == "local" else None
    return pre_norm(
        x,
        lambda h: attention(
            c, h, "attn.attention.", o_bias=True, o_name="out_proj", prepare=unrotated, window=window, keeps_all=True
        ),
        lambda h: plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, bias=True),
        ("ln_1", "ln_2"),
        bias=True,
    )

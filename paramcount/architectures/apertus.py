"""Apertus: a norm on every query and key head, an MLP without a gate whose activation has two learned numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, Weight, activate, linear
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.conditions import padding_in_table


def is_learned(js: Mapping[str, Any], c: Mapping[str, Any]) -> bool:
    """Of the activations that hidden_act may name only xIELU has parameters."""
    return bool(js.get("hidden_act", "xielu") == "xielu")


class Apertus(Sizes):
    """Source: modeling_apertus.py of the reference; the activation arXiv:2411.13010."""

    reference: ClassVar[str] = "ApertusForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(3),)

    vocab_size: Positive = hf(absent=131072)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=14336)
    learned_activation: Flag = derived(is_learned)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    names = ("attention_layernorm", "feedforward_layernorm")
    return pre_norm(
        x, lambda h: attention(c, h, "self_attn.", bias=c.attention_bias, qk_norm=True), lambda h: mlp(c, h), names
    )


def mlp(c: Any, x: Data) -> Data:
    h = linear(x, "mlp.up_proj", "mlp.up", c.d_ff)
    h = xielu(h, "mlp.act_fn.") if c.learned_activation else activate(h, "activation")
    return linear(h, "mlp.down_proj", "mlp.down", c.d_model)


def xielu(x: Data, prefix: str) -> Data:
    """Two learned numbers, one for each side of zero, and two fixed ones that are saved with them."""
    learned = (Weight(prefix + "alpha_p", "other", (1,)), Weight(prefix + "alpha_n", "other", (1,)))
    fixed = (Weight(prefix + "beta", "other", (), role="buffer"), Weight(prefix + "eps", "other", (), role="buffer"))
    return Data("xielu", (x,), x.shape, learned + fixed)

"""MiniCPM, MiniCPM4 and MiniCPM-MoE: Llama's layers or experts, their outputs scaled before the residual.

A tied LM head by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data, experts, linear
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


def n_experts(js: Mapping[str, Any], c: Mapping[str, Any]) -> Any:
    return js.get("num_experts", 0) or None


def n_active(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """No num_experts_per_tok, which only a model without experts may lack."""
    if c["n_routed_experts"] is not None:
        raise ParamcountError("is missing", where="num_experts_per_tok", expected="a positive integer")


class MiniCPM(Sizes):
    """Source: modeling_minicpm.py of openbmb/MiniCPM-2B-sft-bf16 and openbmb/MiniCPM-MoE-8x2B. The factors on the token
    rows, the residuals and the logits are numbers of the config, not weights."""

    reference: ClassVar[str] = "MiniCPMForCausalLM of openbmb/MiniCPM-2B-sft-bf16"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    n_routed_experts: Positive | None = derived(n_experts)
    n_active_experts: Positive | None = hf(absent=n_active)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def unused_fields(c) -> tuple[str, ...]:
        return ("n_active_experts",) if c.n_routed_experts is None else ()

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, (lambda h: mixture(c, h)) if c.n_routed_experts is not None else None, bias=c.attention_bias
    )


def mixture(c: Any, x: Data) -> Data:
    """Experts of the size of the MLP in whose place they stand."""
    scores = linear(x, "mlp.gate", "router", c.n_routed_experts)
    names = ("w1", "w3", "w2")
    return experts(
        x,
        scores,
        "mlp.experts.{expert}.",
        c.n_routed_experts,
        c.n_active_experts,
        lambda x: gated_mlp(x, "", "experts", c.d_ff, names=names),
    )

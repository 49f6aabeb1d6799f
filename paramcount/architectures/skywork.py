"""Skywork-13B: Llama's layers, deeper and narrower, without any bias."""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class Skywork(Sizes):
    """Source: arXiv:2310.19341; modeling_skywork.py of Skywork/Skywork-13B-base."""

    reference: ClassVar[str] = "SkyworkForCausalLM of Skywork/Skywork-13B-base"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, lambda c, kind, x: usual_layer(c, x))

    def check(c) -> None:
        check_heads_fill(c)

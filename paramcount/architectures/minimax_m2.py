"""MiniMax-M2: 256 small experts, a norm over all queries and one over all keys, half of each head rotated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import partial_rope, wide_norm
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import correction, mixture
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rotary import rotary_width
from paramcount.sizes.rules import check_at_most


def rotated(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """Released files say it as rotary_dim, a width."""
    width = js.get("rotary_dim")
    turned: int = rotary_width(1.0 if width is None else width / c["d_head"])(js, c)
    return turned


class MiniMaxM2(Sizes):
    """Source: modeling_minimax_m2.py of the reference. In the released files w1 is the gate, w3 up and w2 down."""

    reference: ClassVar[str] = "MiniMaxM2ForCausalLM"
    unused_keys: ClassVar[tuple[str, ...]] = ("num_mtp_modules",)
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=200064)
    d_model: Positive = hf(absent=3072)
    n_layers: Positive = hf(absent=62)
    n_heads: Positive = hf(absent=48)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=128)
    d_rope: Natural = derived(rotated)
    d_expert: Positive = hf("intermediate_size", absent=1536)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=256)
    n_active_experts: Positive = hf(absent=8)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: moe(c, h), prepare=lambda q, k: prepare(c, q, k))


def prepare(c: Any, q: Data, k: Data) -> tuple[Data, Data]:
    return partial_rope(wide_norm(q, "self_attn.q_norm"), c.d_rope), partial_rope(
        wide_norm(k, "self_attn.k_norm"), c.d_rope
    )


def moe(c: Any, x: Data) -> Data:
    return mixture(
        c,
        x,
        "block_sparse_moe.",
        names=("w1", "w3", "w2"),
        choose=correction(c, "block_sparse_moe.e_score_correction_bias"),
    )

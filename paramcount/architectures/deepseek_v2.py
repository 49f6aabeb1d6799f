"""DeepSeek-V2: latent attention, fine-grained experts beside shared ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, dense_first, usual_layer
from paramcount.parts.feed_forward import shared_mixture
from paramcount.parts.mla import latent_attention
from paramcount.sizes import ABSENT, Condition, Flag, Natural, Positive, Sizes, hf, unvisited
from paramcount.sizes.conditions import latent_heads_stay_whole, padding_in_table
from paramcount.sizes.rules import check_divides, check_rotated_in_pairs

METHODS = ("greedy", "group_limited_greedy")


def experts_are_chosen(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """The best of all experts, or of the best groups of experts, which are as large as each other."""
    if c["n_dense_layers"] == c["n_layers"]:
        return
    method, groups, kept = js.get("topk_method", "greedy"), js.get("n_group"), js.get("topk_group")
    if method not in METHODS:
        raise make_choice_error(method, METHODS, where="topk_method")
    if method == "group_limited_greedy" and (
        groups is None or kept is None or c["n_routed_experts"] % groups or kept > groups
    ):
        raise ParamcountError(
            f"= {describe_value(groups)} groups, {describe_value(kept)} of them kept",
            where="n_group",
            expected="a divisor of the number of experts",
        )


class DeepseekV2(Sizes):
    """Source: arXiv:2405.04434, section 2. `d_q_lora` is null where queries have no latent (V2-Lite)."""

    reference: ClassVar[str] = "DeepseekV2ForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (
        experts_are_chosen,
        latent_heads_stay_whole(None),
        padding_in_table(None),
    )

    vocab_size: Positive = hf(absent=102400)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    d_q_lora: Positive | None = hf(absent=1536)
    d_kv_lora: Positive = hf(absent=512)
    d_nope: Positive = hf(absent=128)
    d_rope: Positive = hf(absent=64)
    d_v: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=11008)
    n_dense_layers: Natural = hf(absent=0, at_most="n_layers")
    d_expert: Positive = hf(absent=1407)
    n_routed_experts: Positive = hf("num_experts", "n_routed_experts", absent=64)
    n_active_experts: Positive = hf(absent=unvisited, null=ABSENT)
    n_shared_experts: Natural = hf(absent=2)
    attention_bias: Flag = hf(absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_first(c))

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_rope")
        check_divides(c, "n_heads", "d_model")  # the reference asks it although it cuts no head out of d_model


def layer(c: Any, kind: str, x: Data) -> Data:
    mixture = (lambda h: shared_mixture(c, h, "mlp.", shared_bias=c.mlp_bias)) if kind == "moe" else None
    return usual_layer(c, x, mixture, attend=latent_attention, bias=c.attention_bias, mlp_bias=c.mlp_bias)

"""GPT-NeoX and Pythia: parallel attention and MLP, each after its own norm.

A quarter of each head has rotary positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, attend, linear, norm, rope
from paramcount.parts.attentions import fused_qkv, partial_rope
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Derivation, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_at_most, check_even, check_heads_fill


def rotary_width(share: float, *, in_pairs: bool = False) -> Derivation:
    """How much of a head is rotated, None for all of it.

    `share`: where the config does not say. `in_pairs`: an odd width is rounded up.
    """

    def width(js: Mapping[str, Any], c: Mapping[str, Any]) -> int | None:
        rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
        n = int(c["d_head"] * rope.get("partial_rotary_factor", js.get("rotary_pct", share)))
        n += n % 2 if in_pairs else 0
        return None if n == c["d_head"] or (n and c["d_head"] == 1) else n

    return width


class GPTNeoX(Sizes):
    """Source: arXiv:2204.06745, section 2.1."""

    reference: ClassVar[str] = "GPTNeoXForCausalLM"

    vocab_size: Positive = hf(absent=50432)
    n_positions: Positive = hf(
        "max_position_embeddings", absent=2048
    )  # no table: only the masks of older files are as large
    d_model: Positive = hf(absent=6144)
    n_layers: Positive = hf(absent=44)
    n_heads: Positive = hf(absent=64)
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural | None = derived(rotary_width(0.25, in_pairs=True))
    d_ff: Positive = hf(absent=24576)
    attention_bias: Flag = hf(absent=True)
    parallel_residual: Flag = hf("use_parallel_residual", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c,
            tokens,
            layer,
            prefix="gpt_neox.",
            names=("embed_in", "layers", "final_layer_norm"),
            norm_bias=True,
            head_name="embed_out",
        )

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        name, turned = "gpt_neox.layers.{layer}.attention.", c.d_head if c.d_rope is None else c.d_rope
        masks = (name + "bias", (1, 1, c.n_positions, c.n_positions), c.n_layers)
        return (masks, (name + "rotary_emb.inv_freq", (turned // 2,), c.n_layers))

    def check(c) -> None:
        check_heads_fill(c)
        rotation_fits(c)


def rotation_fits(c: Any) -> None:
    if c.d_rope is not None:
        check_at_most(c, "d_rope", "d_head")
        check_even(c, "d_rope")
    elif c.d_head > 1:  # the reference stretches a head of one number instead of turning it
        check_even(c, "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    if not c.parallel_residual:
        return pre_norm(x, lambda h: attention(c, h), lambda h: mlp(c, h), bias=True)
    return (
        x + attention(c, norm(x, "input_layernorm", bias=True)) + mlp(c, norm(x, "post_attention_layernorm", bias=True))
    )


def rotated(c: Any, x: Data) -> Data:
    return rope(x) if c.d_rope is None else partial_rope(x, c.d_rope)


def attention(c: Any, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "attention.query_key_value", bias=c.attention_bias)
    return linear(
        attend(rotated(c, q), rotated(c, k), v),
        "attention.dense",
        "output_projection",
        c.d_model,
        bias=c.attention_bias,
    )


def mlp(c: Any, x: Data) -> Data:
    return plain_mlp(x, ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), "mlp", c.d_ff, bias=True)

"""Falcon-H1: attention and Mamba 2 side by side in every layer, behind one norm."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate, norm
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.state_space import mamba2, norm_of_product
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.mixers import check_mamba_heads, mamba_head, no_key


class FalconH1(Sizes):
    """Source: arXiv:2507.22448, section 2. Fixed multipliers of the config scale what flows and are no weights."""

    reference: ClassVar[str] = "FalconH1ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (
        padding_in_table(0),
        no_key("layer_types", "layers_block_type"),
        check_mamba_heads,
    )

    vocab_size: Positive = hf(absent=128000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=8, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=14336)
    d_ssm: Positive | None = hf("mamba_d_ssm", absent=1024)  # null: mamba_expand says it
    n_mamba_heads: Positive = hf(absent=128)
    d_mamba_head: Positive = derived(mamba_head)
    n_groups: Positive = hf(absent=1)
    d_state: Positive = hf(absent=256)
    d_conv: Positive = hf(absent=4)
    gated_norm: Flag = hf("mamba_rms_norm", absent=False, null=False)
    norm_before_gate: Flag = hf("mamba_norm_before_gate", absent=True, null=False)
    conv_bias: Flag = hf(absent=True, null=False)
    mixer_bias: Flag = hf(absent=False, null=False)
    mixer_out_bias: Flag = hf("projectors_bias", absent=False, null=False)
    attention_bias: Flag = hf(absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, names=("embed_tokens", "layers", "final_layernorm"))


def layer(c: Any, kind: str, x: Data) -> Data:
    def mixers(h: Data) -> Data:
        beside = mamba2(c, h, "mamba.", out_bias=c.mixer_out_bias, gated_norm=lambda y, z, name: gated(c, y, z, name))
        return beside + attention(c, h, "self_attn.", bias=c.attention_bias)

    return pre_norm(
        x,
        mixers,
        lambda h: gated_mlp(h, "feed_forward.", "mlp", c.d_ff, bias=c.mlp_bias),
        ("input_layernorm", "pre_ff_layernorm"),
    )


def gated(c: Any, y: Data, z: Data, name: str) -> Data:
    if not c.gated_norm:
        return y * activate(z, "silu")
    return norm(y, name) * activate(z, "silu") if c.norm_before_gate else norm_of_product(y, z, name)

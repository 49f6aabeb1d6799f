"""Mamba 2: state-space layers whose heads have one decay each and share B and C in groups."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, norm
from paramcount.parts.decoders import decoder
from paramcount.parts.state_space import mamba2
from paramcount.sizes import Condition, Flag, Positive, Sizes, hf
from paramcount.sizes.mixers import check_mixer_fills, expand_d_model, no_key


class Mamba2(Sizes):
    """Source: arXiv:2405.21060, section 7."""

    reference: ClassVar[str] = "Mamba2ForCausalLM"
    unused_keys: ClassVar[tuple[str, ...]] = ("time_step_rank",)
    conditions: ClassVar[tuple[Condition, ...]] = (
        no_key("layer_types"),
        lambda js, c: check_mixer_fills(c, expand_d_model("expand")(js, c)),
    )

    vocab_size: Positive = hf(absent=32768)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=64)
    n_mamba_heads: Positive = hf("num_heads", absent=128)
    d_mamba_head: Positive = hf("head_dim", absent=64)
    n_groups: Positive = hf("n_groups", absent=8)
    d_state: Positive = hf("state_size", absent=128)
    d_conv: Positive = hf("conv_kernel", absent=4)
    conv_bias: Flag = hf("use_conv_bias", absent=True)
    mixer_bias: Flag = hf("use_bias", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, prefix="backbone.", names=("embeddings", "layers", "norm_f"))


def layer(c: Any, kind: str, x: Data) -> Data:
    return x + mamba2(c, norm(x, "norm"), "mixer.")

"""Mamba and Falcon Mamba: state-space layers alone, no attention, no MLP."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate, norm
from paramcount.parts.decoders import decoder
from paramcount.parts.state_space import mamba
from paramcount.sizes import Condition, Flag, Positive, Sizes, derived, hf
from paramcount.sizes.mixers import dt_rank, expand_d_model, no_key

NAMES = ("embeddings", "layers", "norm_f")


class Mamba(Sizes):
    """Source: arXiv:2312.00752, section 3.4."""

    reference: ClassVar[str] = "MambaForCausalLM"
    unused_keys: ClassVar[tuple[str, ...]] = ("pad_vocab_size_multiple",)
    conditions: ClassVar[tuple[Condition, ...]] = (no_key("layer_types"),)

    vocab_size: Positive = hf(absent=50280)
    d_model: Positive = hf(absent=768)
    n_layers: Positive = hf(absent=32)
    d_inner: Positive = hf("intermediate_size", absent=expand_d_model("expand"))
    d_state: Positive = hf("state_size", absent=16)
    d_conv: Positive = hf("conv_kernel", absent=4)
    dt_rank: Positive = derived(dt_rank("time_step_rank"))
    conv_bias: Flag = hf("use_conv_bias", absent=True)
    mixer_bias: Flag = hf("use_bias", absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c, tokens, lambda c, kind, x: x + mamba(c, norm(x, "norm"), "mixer."), prefix="backbone.", names=NAMES
        )


class FalconMamba(Mamba):
    """Mamba with norms, which have no weights, on step, B and C. Source: arXiv:2410.05355, section 2."""

    reference: ClassVar[str] = "FalconMambaForCausalLM"

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, falcon_layer, prefix="backbone.", names=NAMES)


def falcon_layer(c: Any, kind: str, x: Data) -> Data:
    return x + mamba(c, norm(x, "norm"), "mixer.", inner_norm=lambda y, name: activate(y, "norm"))

"""Mamba and Falcon Mamba: state-space layers alone, no attention, no MLP."""

from paramcount.flow import Data, plain_norm
from paramcount.parts.decoder import Decoder
from paramcount.parts.state_space import mamba
from paramcount.sizes import Flag, Positive, derived, hf, setting
from paramcount.sizes.mixers import dt_rank, expand_d_model, no_key


class Mamba(Decoder):
    """Source: arXiv:2312.00752, section 3.4."""

    reference = "MambaForCausalLM"
    gguf = "mamba"
    not_adapted = ("out_proj", "conv1d")
    prefix = "backbone."
    names = ("embeddings", "layers", "norm_f")
    unused_keys = ("pad_vocab_size_multiple",)
    conditions = (no_key("layer_types"),)

    d_inner: Positive = hf("intermediate_size", absent=expand_d_model("expand"))
    d_state: Positive = hf("state_size")
    d_conv: Positive = hf("conv_kernel")
    dt_rank: Positive = derived(dt_rank("time_step_rank"))
    conv_bias: Flag = hf("use_conv_bias")
    mixer_bias: Flag = hf("use_bias")
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="silu")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)

    def layer(c, x: Data) -> Data:
        return x + mamba(c, c.norm(x, "norm"), "mixer.")


class FalconMamba(Mamba):
    """Mamba with norms, which have no weights, on step, B and C. Source: arXiv:2410.05355, section 2."""

    reference = "FalconMambaForCausalLM"
    model_types = ("falcon_mamba",)
    gguf = "mamba"

    mixer_norm_eps = setting("mixer_rms_eps", default=1e-6)

    def layer(c, x: Data) -> Data:
        def inner_norm(x: Data, name: str) -> Data:
            return plain_norm(x, "rms", c.mixer_norm_eps)

        return x + mamba(c, c.norm(x, "norm"), "mixer.", inner_norm=inner_norm)

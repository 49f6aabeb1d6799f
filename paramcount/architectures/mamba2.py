"""Mamba 2: state-space layers whose heads have one decay each and share B and C in groups."""

from paramcount.flow import Data
from paramcount.parts.decoder import Decoder
from paramcount.parts.state_space import mamba2
from paramcount.sizes import Flag, Positive, hf, setting
from paramcount.sizes.mixers import check_mixer_fills, expand_d_model, no_key, time_step_limit


class Mamba2(Decoder):
    """Source: arXiv:2405.21060, section 7."""

    reference = "Mamba2ForCausalLM"
    gguf = "mamba2"
    not_adapted = ("out_proj", "conv1d")
    prefix = "backbone."
    names = ("embeddings", "layers", "norm_f")
    unused_keys = ("time_step_rank",)
    conditions = (no_key("layer_types"), lambda js, c: check_mixer_fills(c, expand_d_model("expand")(js, c)))

    n_mamba_heads: Positive = hf("num_heads")
    d_mamba_head: Positive = hf("head_dim")
    n_groups: Positive = hf("n_groups")
    d_state: Positive = hf("state_size")
    d_conv: Positive = hf("conv_kernel")
    conv_bias: Flag = hf("use_conv_bias")
    mixer_bias: Flag = hf("use_bias")
    tie_word_embeddings: Flag = hf()

    activation = setting("hidden_act", default="silu")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    time_step_limit = setting(default=time_step_limit)

    def layer(c, x: Data) -> Data:
        return x + mamba2(c, c.norm(x, "norm"), "mixer.", groups=c.n_groups)

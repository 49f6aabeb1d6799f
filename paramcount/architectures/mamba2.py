"""Mamba 2: state-space layers whose heads have one decay each and share B and C in groups."""

from paramcount.declare import Data, parts, sizes


class Mamba2(parts.Decoder):
    """Source: arXiv:2405.21060, section 7."""

    reference = "Mamba2ForCausalLM"
    gguf = "mamba2"
    not_adapted = ("out_proj", "conv1d")
    prefix = "backbone."
    names = ("embeddings", "layers", "norm_f")
    unused_keys = ("time_step_rank",)
    conditions = (
        sizes.no_key("layer_types"),
        lambda js, c: sizes.check_mixer_fills(c, sizes.expand_d_model("expand")(js, c)),
    )

    n_mamba_heads: sizes.Positive = sizes.hf("num_heads")
    d_mamba_head: sizes.Positive = sizes.hf("head_dim")
    n_groups: sizes.Positive = sizes.hf("n_groups")
    d_state: sizes.Positive = sizes.hf("state_size")
    d_conv: sizes.Positive = sizes.hf("conv_kernel")
    conv_bias: sizes.Flag = sizes.hf("use_conv_bias")
    mixer_bias: sizes.Flag = sizes.hf("use_bias")

    norm_eps = sizes.setting("layer_norm_epsilon")
    time_step_limit = sizes.setting(default=sizes.time_step_limit)

    def layer(c, x: Data) -> Data:
        return x + parts.mamba2(c, c.norm(x, "norm"), "mixer.")

"""Mamba and Falcon Mamba: state-space layers alone, no attention, no MLP."""

from paramcount.declare import Data, ops, parts, sizes


class Mamba(parts.Decoder):
    """Source: arXiv:2312.00752, section 3.4."""

    reference = "MambaForCausalLM"
    gguf = "mamba"
    not_adapted = ("out_proj", "conv1d")
    prefix = "backbone."
    names = ("embeddings", "layers", "norm_f")
    unused_keys = ("pad_vocab_size_multiple",)
    conditions = (sizes.no_key("layer_types"),)

    d_inner: sizes.Positive = sizes.hf("intermediate_size", absent=sizes.expand_d_model("expand"))
    d_state: sizes.Positive = sizes.hf("state_size")
    d_conv: sizes.Positive = sizes.hf("conv_kernel")
    dt_rank: sizes.Positive = sizes.derived(sizes.dt_rank("time_step_rank"))
    conv_bias: sizes.Flag = sizes.hf("use_conv_bias")
    mixer_bias: sizes.Flag = sizes.hf("use_bias")

    norm_eps = sizes.setting("layer_norm_epsilon")

    def layer(c, x: Data) -> Data:
        return x + parts.mamba(c, c.norm(x, "norm"), "mixer.")


class FalconMamba(Mamba):
    """Mamba with norms, which have no weights, on step, B and C. Source: arXiv:2410.05355, section 2."""

    reference = "FalconMambaForCausalLM"
    model_types = ("falcon_mamba",)
    gguf = "mamba"

    mixer_norm_eps = sizes.setting("mixer_rms_eps")

    def layer(c, x: Data) -> Data:
        def inner_norm(x: Data, name: str) -> Data:
            return ops.plain_norm(x, "rms", c.mixer_norm_eps)

        return x + parts.mamba(c, c.norm(x, "norm"), "mixer.", inner_norm=inner_norm)

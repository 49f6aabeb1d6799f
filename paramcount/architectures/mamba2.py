"""Mamba 2: state-space layers whose heads have one decay each and share B and C in groups."""

from paramcount.declare import Data, parts, sizes


def is_fla(js: sizes.ConfigJson) -> bool:
    """Whether flash-linear-attention's config class wrote it, which has the same model type and other defaults."""
    return "fuse_norm" in js or "fuse_cross_entropy" in js


def fill_inner(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """flash-linear-attention's number of heads: as many as fill the inner size; that of the reference."""
    if not is_fla(js):
        return 128
    return int(sizes.expand_d_model("expand")(js, c) // js.get("head_dim", 64))


class Mamba2(parts.Decoder):
    """Source: arXiv:2405.21060, section 7; for the other form fla/models/mamba2 of fla-org/flash-linear-attention."""

    reference = "Mamba2ForCausalLM"
    gguf = "mamba2"
    not_adapted = ("out_proj", "conv1d")
    prefix = "backbone."
    names = ("embeddings", "layers", "norm_f")
    unused_keys = ("time_step_rank", "rms_norm")
    conditions = (
        sizes.no_key("layer_types"),
        parts.only("rmsnorm", True),
        parts.only("norm_before_gate", False),
        parts.only("D_has_hdim", False),
        lambda js, c: sizes.check_mixer_fills(c, sizes.expand_d_model("expand")(js, c)),
    )

    n_mamba_heads: sizes.Positive = sizes.hf("num_heads", absent=fill_inner)
    d_mamba_head: sizes.Positive = sizes.hf("head_dim")
    n_groups: sizes.Positive = sizes.hf("n_groups", absent=lambda js, c: 1 if is_fla(js) else 8)
    d_state: sizes.Positive = sizes.hf("state_size")
    d_conv: sizes.Positive = sizes.hf("conv_kernel")
    conv_bias: sizes.Flag = sizes.hf("use_conv_bias")
    mixer_bias: sizes.Flag = sizes.hf("use_bias")

    norm_eps = sizes.setting("layer_norm_epsilon", "norm_eps")
    time_step_limit = sizes.setting(default=sizes.time_step_limit)

    def layer(c, x: Data) -> Data:
        return x + parts.mamba2(c, c.norm(x, "norm"), "mixer.")

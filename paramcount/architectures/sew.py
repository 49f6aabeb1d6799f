"""SEW: the encoder of wav2vec 2.0 whose layers read several frames as one."""

from paramcount.declare import Data, ops, parts, sizes


class Sew(parts.PlacedByConvolution):
    """Source: arXiv:2109.06870, section 4; modeling_sew.py of the reference."""

    reference = "SEWForCTC"
    base_model = "SEWModel"
    task_head_prefix = "SEW"
    task_heads = parts.SOUND
    prefix = "sew."

    n_squeezed: sizes.Positive = sizes.hf("squeeze_factor")
    features_projected: sizes.Flag = sizes.derived(lambda js, c: c["channels"][-1] != c["d_model"])
    n_position_zeros: sizes.Natural = sizes.derived(lambda js, c: c["d_position_conv"] // 2)

    def norm_features(c, x: Data) -> Data:
        return c.norm(x, "layer_norm")

    def project(c, x: Data) -> Data:
        return ops.linear(x, "feature_projection", "mixer", c.d_model, bias=True) if c.features_projected else x

    def transform(c, x: Data) -> Data:
        """Means of several frames go through the layers, and each state is spread over as many frames."""
        name, group, width = "pos_conv_embed.conv", c.d_position_group, c.d_position_conv
        h = ops.convolve_strides(x, name, group, width, c.n_squeezed, ops.Zeros(c.n_position_zeros))
        pooled = ops.mean_of_blocks(x, c.n_squeezed)
        h = pooled + ops.drop_rows(ops.activate(c.norm_kernel(h), c.conv_activation), pooled)
        h = c.run_layers(c.begin(h))
        h = ops.linear(h, "upsample.projection", "mixer", c.n_squeezed * c.d_model, bias=True)
        return ops.pad_rows(ops.unfold_rows(ops.activate(h, c.conv_activation), c.d_model), x)

    def begin(c, x: Data) -> Data:
        """What the layers read: x, normed."""
        return c.norm(x, "layer_norm")

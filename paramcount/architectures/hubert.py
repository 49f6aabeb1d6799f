"""HuBERT: the encoder of wav2vec 2.0, which learns to predict clusters of hidden frames."""

from paramcount.declare import Data, ops, parts, sizes


class Hubert(parts.PreOrPostNorm):
    """Source: arXiv:2106.07447, section 2; modeling_hubert.py of the reference."""

    reference = "HubertForCTC"
    base_model = "HubertModel"
    task_head_prefix = "Hubert"
    task_heads = parts.SOUND
    prefix = "hubert."

    norms_features: sizes.Flag = sizes.hf("feat_proj_layer_norm")
    norms_batches: sizes.Flag = sizes.hf("conv_pos_batch_norm")

    def norm_features(c, x: Data) -> Data:
        return super().norm_features(x) if c.norms_features else x

    def norm_places(c, x: Data) -> Data:
        return ops.batch_norm(x, "pos_conv_embed.batch_norm", 1e-5) if c.norms_batches else x

    def norm_kernel(c, x: Data) -> Data:
        return x if c.norms_batches else super().norm_kernel(x)

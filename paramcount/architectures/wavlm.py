"""WavLM: the encoder of wav2vec 2.0 with relative positions, whose biases each token and head gates."""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes

N_GATES = 8  # values that the gates of a head are made of
BUCKETS = ("num_buckets", "max_bucket_distance")
TABLE = "layers.0.attention.rel_attn_embed.weight"


class WavLM(parts.AdaptedWaves, parts.PreOrPostNorm):
    """Source: arXiv:2110.13900, section 3.1; modeling_wavlm.py of the reference."""

    reference = "WavLMForCTC"
    base_model = "WavLMModel"
    task_head_prefix = "WavLM"
    task_heads = parts.SOUND_HEADS
    prefix = "wavlm."
    linear_subclasses = ("gru_rel_pos_linear.weight",)
    linear_routers = (*parts.WaveEncoder.linear_routers, "gru_rel_pos_linear.weight")
    unused_keys = (*parts.HEAD_KEYS, "num_ctc_classes")
    conditions = (*parts.PreOrPostNorm.conditions, sizes.buckets_reach(*BUCKETS, 800, one_sided=False))

    n_buckets: sizes.Positive = sizes.hf("num_buckets")

    farthest: ClassVar = sizes.setting("max_bucket_distance")

    def share(c, x: Data) -> tuple[Data, ...]:
        """A bias for each pair of frames and each head, which the first layer's table has."""
        if c.n_layers == 0:
            return ()
        buckets = ops.bucket_distances(x, c.n_buckets, c.farthest, causal=False)
        return (ops.lookup(buckets, TABLE, "position", c.n_buckets, c.n_heads),)

    def attend(c, x: Data, *shared: Data) -> Data:
        name = "attention.gru_rel_pos_linear."
        weight = ops.Weight(name + "weight", "position", (N_GATES, c.d_head))
        gates = ops.linear_by_head(ops.reshape(x, c.n_heads, c.d_head), N_GATES, weight, of="all heads")
        gates = ops.add_vector(gates, name + "bias", "position", N_GATES)
        biases = [ops.gate_bias(found, gates, "attention.gru_rel_pos_const") for found in shared]
        return parts.multi_head(c, x, "attention.", mix=lambda q, k, v: ops.attend(q, k, v, *biases))

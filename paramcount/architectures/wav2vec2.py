"""wav2vec 2.0: convolutions over the samples of a sound, then a transformer whose states are spelled by CTC.

In pre-training, the states of hidden frames are compared with learned codes.
"""

from paramcount.declare import Data, ops, parts, sizes


class Wav2Vec2(parts.AdaptedWaves, parts.PreOrPostNorm):
    """Source: arXiv:2006.11477, section 2; arXiv:2305.13516, section 4.2, for the small adapters in layers;
    modeling_wav2vec2.py of the reference.
    """

    reference = "Wav2Vec2ForCTC"
    base_model = "Wav2Vec2Model"
    task_head_prefix = "Wav2Vec2"
    task_heads = parts.SOUND_HEADS | {
        "ForPreTraining": parts.TaskHead(parts.compare_with_codes, parts.CODES, (parts.states_are_as_wide,))
    }
    prefix = "wav2vec2."

    d_adapter: sizes.Natural | None = sizes.hf("adapter_attn_dim", absent=None)

    def layer(c, x: Data, *shared: Data) -> Data:
        x = super().layer(x, *shared)
        if c.d_adapter is None or not c.pre_norm:
            return x
        h = ops.layer_norm(x, "adapter_layer.norm", 1e-5)
        names = ("adapter_layer.linear_1", "adapter_layer.linear_2")
        return x + parts.plain_mlp(h, names, "mlp", c.d_adapter, activation="relu", bias=True)

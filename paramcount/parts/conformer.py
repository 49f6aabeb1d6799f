"""SeamlessM4T's speech encoder: a Conformer, and convolutions that leave one of several frames.

Source: arXiv:2308.11596, section 4.1; SeamlessM4TSpeechEncoder and SeamlessM4Tv2SpeechEncoder of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data

ALL_CHUNKS = 2**31  # as many as no sound has


@sizes.options_first
def positions_are(js: sizes.ConfigJson, c: sizes.FieldValues, kind: str, default: str) -> Any:
    """Whether position_embeddings_type, which has a default, is this kind of position."""
    return js.get("position_embeddings_type", default) == kind


def read_left_chunks(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Chunks before its own that a frame sees: all of them if the number is less than 0."""
    n: int = js.get("speech_encoder_left_chunk_num", 128)
    return n if n >= 0 else ALL_CHUNKS


class SpeechEncoder(sizes.Sizes):
    """The sizes of a speech encoder that stand beside those of a text decoder with the same d_model."""

    d_model: sizes.Positive = sizes.hf()
    n_mels: sizes.Positive = sizes.hf("feature_projection_input_dim")
    n_speech_layers: sizes.Natural = sizes.hf("speech_encoder_layers")
    n_speech_heads: sizes.Positive = sizes.hf("speech_encoder_attention_heads")
    d_speech_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_speech_heads"))
    d_speech_ff: sizes.Natural = sizes.hf("speech_encoder_intermediate_size")
    d_conv: sizes.Positive = sizes.hf("conv_depthwise_kernel_size")
    has_adapter: sizes.Flag = sizes.hf("add_adapter")
    n_adapter_layers: sizes.Natural = sizes.hf("num_adapter_layers")
    d_adapter_conv: sizes.Positive = sizes.hf("adaptor_kernel_size")
    adapter_stride: sizes.Positive = sizes.hf("adaptor_stride")
    n_adapter_zeros: sizes.Natural = sizes.derived(lambda js, c: c["adapter_stride"] // 2)

    speech_activation: ClassVar = sizes.setting("speech_encoder_hidden_act", usual="swish")
    speech_eps: ClassVar = sizes.setting("layer_norm_eps", usual=1e-5)

    def listen(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = ops.layer_norm(frames, "feature_projection.layer_norm", c.speech_eps)
        x = ops.linear(x, "feature_projection.projection", "mixer", c.d_model, bias=True)
        shared, body = c.share_positions(x), [("layer", c.n_speech_layers)]
        x = ops.layers(x, "encoder.layers.{layer}.", body, lambda kind, *x: c.conformer_layer(*x), reads=shared)
        x = ops.layer_norm(x, "encoder.layer_norm", c.speech_eps)
        x = x + ops.scale_by(c.feed_speech(x, "intermediate_ffn.", "relu"), 0.5)
        if c.has_adapter:
            body = [("adapter layer", c.n_adapter_layers)]
            x = ops.layers(x, "adapter.layers.{layer}.", body, lambda kind, x: c.adapter_layer(x))
        return ops.layer_norm(x, "inner_layer_norm", 1e-5)

    def share_positions(c, x: Data) -> tuple[Data, ...]:
        """What all layers read about positions."""
        raise NotImplementedError

    def conformer_layer(c, x: Data, *shared: Data) -> Data:
        """Source: arXiv:2005.08100, section 2."""
        x = x + ops.scale_by(
            c.feed_speech(ops.layer_norm(x, "ffn1_layer_norm", 1e-5), "ffn1.", c.speech_activation), 0.5
        )
        x = x + c.attend_speech(ops.layer_norm(x, "self_attn_layer_norm", 1e-5), *shared)
        x = x + c.convolve_speech(ops.layer_norm(x, "conv_module.layer_norm", 1e-5))
        x = x + ops.scale_by(
            c.feed_speech(ops.layer_norm(x, "ffn2_layer_norm", 1e-5), "ffn2.", c.speech_activation), 0.5
        )
        return ops.layer_norm(x, "final_layer_norm", 1e-5)

    def feed_speech(c, x: Data, prefix: str, activation: Any) -> Data:
        names = (prefix + "intermediate_dense", prefix + "output_dense")
        return parts.plain_mlp(x, names, "mlp", c.d_speech_ff, activation=activation, bias=True)

    def project_speech(c, x: Data, name: str) -> Data:
        return ops.linear(x, f"self_attn.linear_{name}", f"qkv.{name}", (c.n_speech_heads, c.d_speech_head), bias=True)

    def attend_speech(c, x: Data, *shared: Data) -> Data:
        raise NotImplementedError

    def attend_plainly(c, x: Data, mask: ops.Mask | None = None) -> Data:
        """Attention without positions."""
        q, k, v = (c.project_speech(x, name) for name in "qkv")
        return c.mix_heads(ops.attend(q, k, v, mask=mask))

    def mix_heads(c, a: Data) -> Data:
        return ops.linear(a, "self_attn.linear_out", "output_projection", c.d_model, bias=True)

    def convolve_speech(c, x: Data) -> Data:
        """Source: arXiv:2005.08100, section 2.2."""
        x = c.gate(ops.convolve_tokens(x, "conv_module.pointwise_conv1", 2 * c.d_model, 1, bias=False))
        x = ops.activate(c.convolve_channels(x), c.speech_activation)
        return ops.convolve_tokens(x, "conv_module.pointwise_conv2", c.d_model, 1, bias=False)

    def convolve_channels(c, x: Data) -> Data:
        """Each channel over adjacent frames, and a norm."""
        raise NotImplementedError

    def gate(c, x: Data) -> Data:
        """Source: arXiv:1612.08083."""
        value, gate = ops.split(x, c.d_model, c.d_model)
        return value * ops.activate(gate, "sigmoid")

    def adapter_layer(c, x: Data) -> Data:
        """One of several frames is left."""
        residual = c.shorten(ops.layer_norm(x, "residual_layer_norm", 1e-5), "residual_conv")
        x = c.shorten(ops.layer_norm(x, "self_attn_layer_norm", 1e-5), "self_attn_conv")
        x = c.attend_plainly(x) + residual
        return x + c.feed_speech(ops.layer_norm(x, "ffn_layer_norm", 1e-5), "ffn.", "relu")

    def shorten(c, x: Data, name: str) -> Data:
        stride, width = c.adapter_stride, c.d_adapter_conv
        return c.gate(
            ops.convolve_frames(x, name, 2 * c.d_model, width, stride=stride, padding=ops.Zeros(c.n_adapter_zeros))
        )

    def check_speech(c) -> None:
        sizes.check_heads_fill(c, "n_speech_heads", "d_speech_head")
        if c.n_speech_layers and c.d_conv % 2 == 0:
            raise sizes.make_value_error(c.d_conv, FieldName("d_conv"), "an odd number")


class RelativeSpeechEncoder(SpeechEncoder):
    """The first version: convolutions over frames on both sides, and relative or rotary positions."""

    has_relative: sizes.Flag = sizes.derived(positions_are("relative", "relative"))
    has_rotary: sizes.Flag = sizes.derived(positions_are("rotary", "relative"))
    n_frequencies: sizes.Natural = sizes.derived(lambda js, c: (c["d_speech_head"] + 1) // 2)

    speech_base: ClassVar = sizes.setting("rotary_embedding_base", usual=10000)

    def share_positions(c, x: Data) -> tuple[Data, ...]:
        if c.has_relative:
            return (ops.distance_sinusoids(x, causal=False, waves="interleaved"), ops.index_distances(x))
        if not c.has_rotary:
            return ()
        name = "encoder.embed_positions.inv_freq"
        return (ops.stored_sinusoids(x, name, c.d_speech_head, c.n_frequencies, c.speech_base),)

    def attend_speech(c, x: Data, *shared: Data) -> Data:
        if c.has_relative:
            return c.attend_relatively(x, *shared)
        if not c.has_rotary:
            return c.attend_plainly(x)
        turned = ops.reshape(
            ops.rope_from(ops.reshape(x, c.n_speech_heads, c.d_speech_head), shared[0], "halves"), c.d_model
        )
        q, k, v = (c.project_speech(y, name) for y, name in ((turned, "q"), (turned, "k"), (x, "v")))
        return c.mix_heads(ops.attend(q, k, v))

    def attend_relatively(c, x: Data, distances: Data, index: Data) -> Data:
        """The scores are the sum of two terms: content and relative position. Source: arXiv:1901.02860."""
        heads = (c.n_speech_heads, c.d_speech_head)
        q, k, v = (c.project_speech(x, name) for name in "qkv")
        r = ops.linear(distances, "self_attn.linear_pos", "qkv.k", heads)
        at_content, at_distance = (ops.add_vector(q, f"self_attn.pos_bias_{name}", "qkv.q", *heads) for name in "uv")
        scores = ops.select_by_pair(index, ops.score_keys(at_distance, r), axis=2)
        scores = ops.scale_by_root(scores, c.d_speech_head, "over √d_head", inverse=True)
        return c.mix_heads(ops.attend(at_content, k, v, scores))

    def convolve_channels(c, x: Data) -> Data:
        x = ops.convolve_tokens(x, "conv_module.depthwise_conv", c.d_model, c.d_conv, group=1, bias=False)
        return ops.batch_norm(x, "conv_module.batch_norm", 1e-5)

    def check_speech(c) -> None:
        super().check_speech()
        size = "d_model" if c.has_relative else "d_speech_head"
        if (c.has_relative or c.has_rotary) and getattr(c, size) % 2:
            raise ParamcountError(f"= {getattr(c, size)}", where=FieldName(size), expected="an even number")


class CausalSpeechEncoder(SpeechEncoder):
    """The second version: convolutions over earlier frames, and a learned vector per distance."""

    has_distances: sizes.Flag = sizes.derived(positions_are("relative_key", "relative_key"))
    n_preceding: sizes.Natural = sizes.hf("left_max_position_embeddings")
    n_following: sizes.Natural = sizes.hf("right_max_position_embeddings")
    speech_chunk: sizes.Positive = sizes.hf("speech_encoder_chunk_size")
    n_left_chunks: sizes.Natural = sizes.derived(read_left_chunks)

    def share_positions(c, x: Data) -> tuple[Data, ...]:
        return (ops.index_clipped_distances(x, c.n_preceding, c.n_following),) if c.has_distances else ()

    def attend_speech(c, x: Data, *shared: Data) -> Data:
        """Queries also meet a vector per distance. Source: arXiv:1803.02155."""
        mask = ops.Chunk(c.speech_chunk, before=c.n_left_chunks)
        if not c.has_distances:
            return c.attend_plainly(x, mask)
        q, k, v = (c.project_speech(x, name) for name in "qkv")
        rows = c.n_preceding + c.n_following + 1
        table = ops.learned_rows("self_attn.distance_embedding.weight", "position", rows, c.d_speech_head)
        bias = ops.select_by_pair(shared[0], ops.score_keys(q, ops.to_every_head(table, c.n_speech_heads)), axis=2)
        bias = ops.scale_by_root(bias, c.d_speech_head, "over √d_head", inverse=True)
        return c.mix_heads(ops.attend(q, k, v, bias, mask=mask))

    def convolve_channels(c, x: Data) -> Data:
        x = ops.convolve_earlier_frames(x, "conv_module.depthwise_conv", c.d_conv)
        return ops.layer_norm(x, "conv_module.depthwise_layer_norm", 1e-5)

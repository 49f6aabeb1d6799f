"""w2v-BERT 2.0: Conformer layers on mel frames, two of which stand side by side."""

from typing import Any, ClassVar

from paramcount.architectures.wav2vec2_conformer import ConformerOfWaves
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, make_choice_error


def ffn_needs_an_adapter(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference builds the MLP only with an adapter behind it."""
    if c["has_last_mlp"] and not c["has_adapter"]:
        expected = "false, or add_adapter = true"
        raise ParamcountError("= true", where="use_intermediate_ffn_before_adapter", expected=expected)


def positions_are_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    known = ("relative", "relative_key", "rotary")
    if (found := js.get("position_embeddings_type", known[0])) is not None and found not in known:
        raise make_choice_error(found, known, where="position_embeddings_type")


SOUND_CLASS = parts.SOUND_HEADS["ForSequenceClassification"]
WIDER = {"d_projected": (sizes.Positive, sizes.hf("classifier_proj_size", absent=768))}


class Wav2Vec2Bert(ConformerOfWaves):
    """Source: arXiv:2312.05187, section 3.1.1; modeling_wav2vec2_bert.py of the reference."""

    reference = "Wav2Vec2BertForCTC"
    model_types = ("wav2vec2-bert",)
    base_model = "Wav2Vec2BertModel"
    task_head_prefix = "Wav2Vec2Bert"
    task_heads = parts.SOUND_HEADS | {
        "ForSequenceClassification": SOUND_CLASS._replace(fields=SOUND_CLASS.fields | WIDER)
    }
    prefix = "wav2vec2_bert."
    unused_keys = (*parts.HEAD_KEYS, "max_source_positions")
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        *ConformerOfWaves.conditions, positions_are_known, ffn_needs_an_adapter,
    )  # fmt: skip

    channels = kernels = strides = sizes.constant(())
    conv_bias = sizes.constant(value=False)
    n_frequencies = sizes.constant(0)
    n_mels: sizes.Positive = sizes.hf("feature_projection_input_dim")
    has_relative: sizes.Flag = sizes.derived(parts.conformer.positions_are("relative", "relative_key"))
    has_rotary: sizes.Flag = sizes.derived(parts.conformer.positions_are("rotary", "relative_key"))
    has_distances: sizes.Flag = sizes.derived(parts.conformer.positions_are("relative_key", "relative_key"))
    n_preceding: sizes.Natural = sizes.hf("left_max_position_embeddings")
    n_following: sizes.Natural = sizes.hf("right_max_position_embeddings")
    has_last_mlp: sizes.Flag = sizes.hf("use_intermediate_ffn_before_adapter")
    n_adapter_zeros: sizes.Natural = sizes.derived(lambda js, c: c["adapter_stride"] // 2)
    d_adapter_head: sizes.Positive = sizes.derived(lambda js, c: c["d_adapted"] // c["n_heads"])

    adapter_activation: ClassVar = sizes.setting("adapter_act", usual="relu")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        """Mel frames to scores of the letters that each frame may stand for, or without `head` to states."""

        def build(frames: Data, *masked: Data) -> Data:
            x = ops.block(frames, c.prefix, c.encode, reads=masked)
            return c.head(x) if head else x

        return ops.block(ops.given("mel frames", "frames", c.n_mels), "", build, reads=c.list_masks(), part="encoder")

    def convolve(c, x: Data) -> Data:
        """The frames are features as they are."""
        return x

    def transform(c, x: Data) -> Data:
        return c.run_layers(x)

    def share(c, x: Data) -> tuple[Data, ...]:
        if c.has_distances:
            return (ops.index_clipped_distances(x, c.n_preceding, c.n_following),)
        return c.share_positions(x) if c.has_relative else ()

    def layer(c, x: Data, *shared: Data) -> Data:
        x = x + ops.scale_by(c.feed_speech(c.norm(x, "ffn1_layer_norm"), "ffn1.", c.speech_activation), 0.5)
        x = x + c.attend_speech(c.norm(x, "self_attn_layer_norm"), *shared)
        x = x + c.convolve_speech(c.norm(x, "conv_module.layer_norm"))
        x = x + ops.scale_by(c.feed_speech(c.norm(x, "ffn2_layer_norm"), "ffn2.", c.speech_activation), 0.5)
        return c.norm(x, "final_layer_norm")

    def attend_speech(c, x: Data, *shared: Data) -> Data:
        if c.has_relative:
            return c.attend_relatively(x, *shared)
        if c.has_rotary:
            heads = ops.reshape(x, c.n_heads, c.d_head)
            turned = ops.reshape(ops.rope(heads, rotate(c)), c.d_model)
            q, k, v = (c.project_speech(y, name) for y, name in ((turned, "q"), (turned, "k"), (x, "v")))
            return c.mix_heads(ops.attend(q, k, v))
        return c.attend_by_distance(x, *shared) if c.has_distances else c.attend_plainly(x)

    def attend_by_distance(c, x: Data, rows: Data) -> Data:
        """Queries also meet a vector per distance. Source: arXiv:1803.02155."""
        q, k, v = (c.project_speech(x, name) for name in "qkv")  # [n, n_heads, d_head]
        name, n = "self_attn.distance_embedding.weight", c.n_preceding + c.n_following + 1
        table = ops.to_every_head(ops.learned_rows(name, "position", n, c.d_head), c.n_heads)
        bias = ops.select_by_pair(rows, ops.score_keys(q, table), axis=2)  # [n_heads, n, n]
        bias = ops.scale_by_root(bias, c.d_head, "over √d_head", inverse=True)
        return c.mix_heads(ops.attend(q, k, v, bias))

    def convolve_channels(c, x: Data) -> Data:
        x = ops.convolve_earlier_frames(x, "conv_module.depthwise_conv", c.d_conv)
        return c.norm(x, "conv_module.depthwise_layer_norm")

    def adapt(c, x: Data) -> Data:
        if c.has_last_mlp:
            x = x + ops.scale_by(c.feed_speech(x, "intermediate_ffn.", "relu"), 0.5)
        return super().adapt(x)

    def adapter_layer(c, x: Data) -> Data:
        """One of several frames is left."""
        residual = c.leave_one(c.norm(x, "residual_layer_norm"), "residual_conv")
        x = c.leave_one(c.norm(x, "self_attn_layer_norm"), "self_attn_conv")
        q, k, v = (c.project_adapted(x, name) for name in "qkv")  # [n, n_heads, d_adapter_head]
        a = ops.attend(q, k, v)
        x = ops.linear(a, "self_attn.linear_out", "output_projection", c.d_adapted, bias=True) + residual
        return x + c.feed_speech(c.norm(x, "ffn_layer_norm"), "ffn.", c.adapter_activation)

    def project_adapted(c, x: Data, name: str) -> Data:
        return ops.linear(x, f"self_attn.linear_{name}", f"qkv.{name}", (c.n_heads, c.d_adapter_head), bias=True)

    def leave_one(c, x: Data, name: str) -> Data:
        width, stride, zeros = c.d_adapter_conv, c.adapter_stride, ops.Zeros(c.n_adapter_zeros)
        value, gate = ops.split(
            ops.convolve_frames(x, name, 2 * c.d_adapted, width, stride=stride, padding=zeros), c.d_adapted, c.d_adapted
        )
        return value * ops.activate(gate, "sigmoid")

    def check(c) -> None:
        super().check()
        if c.has_adapter and c.d_adapter_head * c.n_heads != c.d_adapted:
            raise sizes.make_value_error(c.d_adapted, "output_hidden_size", f"a multiple of {c.n_heads} heads")


def rotate(c: Any) -> ops.Rope | ops.Unknown:
    return c.speech_base if isinstance(c.speech_base, ops.Unknown) else ops.Rope(c.speech_base)

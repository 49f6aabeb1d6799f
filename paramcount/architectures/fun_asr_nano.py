"""Fun-ASR-Nano: SenseVoice's encoder, whose attention remembers neighbouring frames, and an adaptor before Qwen 3."""

from typing import Any

from paramcount.architectures.qwen3 import SMALL_QWEN_3
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

QKVO = ("q_proj", "k_proj", "v_proj", "o_proj")


def last_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The last layer that transcribes and the last one that predicts timestamps."""
    n: int = c["n_layers"]
    return tuple(sorted({i for i in (n - c["n_timestamp_layers"] - 1, n - 1) if i >= 0}))


class FunAsrLayers(sizes.Sizes):
    """Pre-norm layers of LayerNorms, attention and a plain MLP, with biases."""

    n_heads: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()

    activation = sizes.setting("hidden_act", default="relu")
    norm_eps = sizes.setting("layer_norm_eps", default=1e-5)

    def feed_forward(c, x: Data) -> Data:
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    norm = parts.use_layer_norm

    def check(c) -> None:
        sizes.check_heads_fill(c)


class FunAsrEncoder(FunAsrLayers):
    """SAN-M: a convolution over adjacent frames is added to the attention. Source: arXiv:2006.01713, section 2.2."""

    config_class = "FunAsrNanoEncoderConfig"

    section = "audio_config"
    unused_keys = ("max_position_embeddings",)

    n_layers: sizes.Positive = sizes.hf()  # the first one changes the size
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    n_stacked: sizes.Positive = sizes.hf("num_stacked_frames")
    n_timestamp_layers: sizes.Natural = sizes.hf("num_timestamp_prediction_layers")
    d_conv: sizes.Positive = sizes.hf("fsmn_kernel_size")
    normed_layers: sizes.Indices = sizes.derived(last_layers)

    def forward(c, frames: Data) -> Data:
        """Stacked frames [frames, n_stacked · n_mels] to states [frames, d_model]; only the first layer widens."""
        x = ops.scale_by_root(frames, c.d_model, "times √d_model")
        x = x + ops.sinusoids(x, slowest="base", offset=1)
        x = ops.block(x, "layers.0.", lambda x: c.layer("normed" if 0 in c.normed_layers else "layer", x))
        kinds: list[tuple[str, ops.Size]] = []
        reached = 1
        for i in c.normed_layers:
            if i > 0:
                kinds += [("layer", i - reached), ("normed", 1)]
                reached = i + 1
        return ops.layers(x, "layers.{layer}.", [*kinds, ("layer", c.n_layers - reached)], c.layer, first=1)

    def layer(c: Any, kind: str, x: Data) -> Data:
        a = c.attention(c.norm(x, "input_layernorm"))
        x = c.feed_forward(x + a if x.shape == a.shape else a)
        return c.norm(x, "final_layernorm") if kind == "normed" else x

    def attention(c: Any, x: Data) -> Data:
        q = ops.linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head), bias=True)  # [n, n_heads, d_head]
        k = ops.linear(x, "self_attn.k_proj", "qkv.k", (c.n_heads, c.d_head), bias=True)  # [n, n_heads, d_head]
        v = ops.linear(x, "self_attn.v_proj", "qkv.v", c.d_model, bias=True)
        a = ops.attend(q, k, ops.to_heads(v, c.n_heads, c.d_head))  # [n, n_heads, d_head]
        a = ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=True)
        near = ops.convolve_tokens(
            v, "self_attn.fsmn.conv", c.d_model, c.d_conv, group=1, bias=False, padding=ops.FEWER_BEFORE
        )
        return a + (near + v)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.n_mels * c.n_stacked % 2:
            raise ParamcountError(
                f"= {c.n_mels}, but positions need an even number of inputs",
                where="num_mel_bins",
                expected="an even product with num_stacked_frames",
            )


class FunAsrAdaptor(FunAsrLayers):
    """Two matrices, then layers as wide as the language model."""

    config_class = "FunAsrNanoAdaptorConfig"

    section = "adaptor_config"

    d_between: sizes.Positive = sizes.hf("projector_hidden_size")

    between = sizes.setting("projector_hidden_act")

    def forward(c: Any, x: Data) -> Data:
        x = ops.activate(ops.linear(x, "linear_1", "projector", c.d_between, bias=True), c.between)
        x = ops.linear(x, "linear_2", "projector", c.d_model, bias=True)
        return ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))

    def layer(c: Any, x: Data) -> Data:
        x = x + parts.multi_head(c, c.norm(x, "input_layernorm"), "self_attn.", QKVO)
        return c.feed_forward(x)


class FunAsrNano(parts.AudioLanguageModel):
    """Source: arXiv:2509.12508, section 2."""

    reference = "FunAsrNanoForConditionalGeneration"
    sections = sizes.Sections(
        "qwen3",
        default_tie=True,
        default_section=SMALL_QWEN_3 | {"tie_word_embeddings": True},
        other_sections=("audio_config", "adaptor_config"),
    )

    audio: FunAsrEncoder
    adaptor: FunAsrAdaptor

    def hear(c: Any) -> Data:
        frames = ops.given("log-mel frames", "frames", c.audio.n_stacked * c.audio.n_mels)
        sound = ops.block(frames, c.encoder_prefix, c.audio.forward, part="audio")
        return ops.block(sound, c.projector_prefix, c.adaptor.forward, part="projector")

    def check(c: Any) -> None:
        d_model = c.language.d_model
        if c.adaptor.d_model != d_model:
            where, found, expected = "hidden_size", c.adaptor.d_model, d_model
        elif c.adaptor.d_ff != d_model // 4:
            where, found, expected = "intermediate_size", c.adaptor.d_ff, d_model // 4
        else:
            return
        raise ParamcountError(f"= {found}", where=f"adaptor_config.{where}", expected=f"{expected}")

"""Granite Speech: a Conformer, a Q-Former that asks each window of its states, and Granite."""

from functools import reduce
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

QFORMER = "blip_2_qformer"


def queries_per_window(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    return c["window"] // c["downsampling"]


def fitting_memory(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The Q-Former reads vectors of the size that its own section states."""
    section = js.get("projector_config") or {}
    if (name := section.get("model_type", QFORMER)) != QFORMER:
        raise sizes.make_value_error(name, "projector_config.model_type", QFORMER)
    audio = c["audio"]
    expected = audio["d_model"] * (1 + len(audio.get("early_states", ())))
    if (found := section.get("encoder_hidden_size", 1408)) != expected:
        where = "projector_config.encoder_hidden_size"
        raise ParamcountError(f"= {describe_value(found)}", where=where, choices=(expected,))


class GraniteEars(sizes.Sizes):
    """A Conformer that adds, in the middle, the characters that it expects. Source: GraniteSpeechCTCEncoder."""

    config_class = "GraniteSpeechEncoderConfig"

    section = "encoder_config"

    n_mels: sizes.Positive = sizes.hf("num_mel_bins", "input_dim")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "num_layers")
    middle: sizes.Indices = sizes.derived(lambda js, c: (c["n_layers"] // 2,) if c["n_layers"] > 1 else ())
    early_states: sizes.Indices = sizes.derived(lambda js, c: ())
    d_model: sizes.Positive = sizes.hf("hidden_size", "hidden_dim")
    n_ff_multiples: sizes.Positive = sizes.hf("feedforward_mult")  # of d_model, in an MLP
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "num_heads")
    d_head: sizes.Positive = sizes.hf(
        "dim_head", absent=sizes.floor_d_model_per_head, null=sizes.floor_d_model_per_head
    )
    n_characters: sizes.Positive = sizes.hf("output_dim")
    chunk: sizes.Positive = sizes.hf("context_size")  # frames that see one another
    farthest: sizes.Positive = sizes.hf("max_pos_emb")
    d_conv: sizes.Positive = sizes.hf("conv_kernel_size")
    n_conv_multiples: sizes.Positive = sizes.hf("conv_expansion_factor")  # of d_model, in a convolution

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = ops.linear(frames, "input_linear", "embedding", c.d_model, bias=True)
        distances = ops.index_signed_distances(x, 2 * c.farthest + 1)
        states, start = [], 0
        for stop in sorted({*c.middle, *c.early_states}):
            x = c.stack(x, distances, start, stop - start) if stop > start else x
            x = x + c.expect(x) if stop in c.middle else x
            states += [x] if stop in c.early_states else []
            start = stop
        x = c.stack(x, distances, start, c.n_layers - start)
        return reduce(ops.join, (*states, x))

    def stack(c, x: Data, distances: Data, start: int, n: ops.Size) -> Data:
        body = [("layer", n)]
        return ops.layers(x, "layers.{layer}.", body, lambda kind, *x: c.layer(*x), reads=(distances,), first=start)

    def layer(c, x: Data, distances: Data) -> Data:
        x = x + ops.scale_by(c.feed_forward(x, "ff1."), 0.5)
        x = x + c.attention(ops.layer_norm(x, "attn.pre_norm", 1e-5), distances)
        x = x + c.convolution(ops.layer_norm(x, "conv.norm", 1e-5))
        x = x + ops.scale_by(c.feed_forward(x, "ff2."), 0.5)
        return ops.layer_norm(x, "post_norm", 1e-5)

    def feed_forward(c, x: Data, prefix: str) -> Data:
        x = ops.layer_norm(x, prefix + "pre_norm", 1e-5)
        names = (prefix + "up_proj", prefix + "down_proj")
        return parts.plain_mlp(x, names, "mlp", c.n_ff_multiples * c.d_model, activation="silu", bias=True)

    def attention(c, x: Data, distances: Data) -> Data:
        """Shaw's relative positions: queries also meet a vector per distance. Source: arXiv:1803.02155."""
        heads = (c.n_heads, c.d_head)
        q = ops.linear(x, "attn.to_q", "qkv.q", heads)
        k, v = ops.fused(x, "attn.to_kv", {"qkv.k": heads, "qkv.v": heads})
        table = ops.learned_rows("attn.rel_pos_emb.weight", "position", 2 * c.farthest + 1, c.d_head)
        scores = ops.select_by_pair(distances, ops.score_keys(q, ops.to_every_head(table, c.n_heads)), axis=2)
        scores = ops.scale_by_root(scores, c.d_head, "over √d_head", inverse=True)
        a = ops.attend(q, k, v, scores, mask=ops.Chunk(c.chunk))  # [n, n_heads, d_head]
        return ops.linear(a, "attn.to_out", "output_projection", c.d_model, bias=True)

    def convolution(c, x: Data) -> Data:
        """Source: arXiv:2005.08100, section 2.2."""
        d = c.n_conv_multiples * c.d_model
        value, gate = ops.split(ops.convolve_tokens(x, "conv.up_conv", 2 * d, 1), d, d)
        x = ops.convolve_tokens(
            value * ops.activate(gate, "sigmoid"), "conv.depth_conv.conv", d, c.d_conv, group=1, bias=False
        )
        x = ops.activate(ops.batch_norm(x, "conv.batch_norm", 1e-5), "silu")
        return ops.convolve_tokens(x, "conv.down_conv", c.d_model, 1)

    def expect(c, x: Data) -> Data:
        x = ops.activate(ops.linear(x, "out", "other", c.n_characters, bias=True), "softmax")
        return ops.linear(x, "out_mid", "other", c.d_model, bias=True)

    def check(c) -> None:
        if c.chunk > c.farthest:
            raise sizes.make_value_error(c.chunk, "context_size", f"at most max_pos_emb = {c.farthest}")


class GraniteQFormer(parts.Blip2QFormer):
    """Queries meet a sound."""

    config_class = "Blip2QFormerConfig"

    section = "projector_config"


class GraniteSpeech(parts.FormerAudioLanguageModel):
    """Source: arXiv:2505.08699, section 3; modeling_granite_speech.py of the reference."""

    reference = "GraniteSpeechForConditionalGeneration"
    sections = sizes.Sections("granite", default_tie=True, other_sections=("encoder_config", "projector_config"))
    conditions = (fitting_memory,)

    encoder_prefix = "encoder."
    projector_prefix = "projector."

    audio: GraniteEars
    qformer: GraniteQFormer
    window: sizes.Positive = sizes.hf("window_size")
    downsampling: sizes.Positive = sizes.hf("downsample_rate")
    n_queries: sizes.Positive = sizes.derived(queries_per_window)

    audio_token = sizes.setting("audio_token_id", "audio_token_index")

    def hear(c: Any) -> Data:
        """A window of log-mel frames to n_queries vectors of the language model's size."""
        frames = ops.given("log-mel frames", c.window, c.audio.n_mels)
        sound = ops.block(frames, c.encoder_prefix, c.audio.forward, part="audio")
        return ops.block(sound, c.projector_prefix, c.project, part="projector")

    def project(c: Any, x: Data) -> Data:
        queries = parts.learned_queries("query", c.n_queries, c.qformer.d_model)
        filled = ops.block(queries, "qformer.", c.qformer.fill, reads=(x,))
        return ops.linear(filled, "linear", "projector", c.language.d_model, bias=True)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        found = []
        if not c.audio.middle:
            x = ops.given("states", "frames", c.audio.d_model)
            idle = ops.block(x, c.encoder_prefix, lambda x: c.audio.expect(x), part="audio")
            found.append(ops.Unreachable(idle, "the encoder has no layer in its first half"))
        if c.qformer.has_text_mlp:
            x = ops.given("queries", c.n_queries, c.qformer.d_model)
            idle = ops.block(x, f"{c.projector_prefix}qformer.", c.qformer.read_text, part="projector")
            found.append(ops.Unreachable(idle, "the Q-Former reads no text"))
        return tuple(found)


class GranitePlusEars(GraniteEars):
    """States of some layers stand beside those of the last one."""

    config_class = "GraniteSpeechPlusEncoderConfig"

    early_states: sizes.Indices = sizes.hf(
        "cat_hidden_layers", absent=(), null=()
    )  # by the number of layers before them

    def check(c) -> None:
        super().check()
        if any(i >= c.n_layers for i in c.early_states) or len(set(c.early_states)) < len(c.early_states):
            expected = f"different numbers from 0 to {c.n_layers - 1}"
            raise ParamcountError(f"= {list(c.early_states)}", where="cat_hidden_layers", expected=expected)


class GraniteSpeechPlus(GraniteSpeech):
    """Source: modeling_granite_speech_plus.py of the reference."""

    reference = "GraniteSpeechPlusForConditionalGeneration"
    model_types = ("granite_speech_plus",)
    sections = sizes.Sections("granite", default_tie=True, other_sections=("encoder_config", "projector_config"))

    audio: GranitePlusEars

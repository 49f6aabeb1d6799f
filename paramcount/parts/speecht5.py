"""SpeechT5's layers, and what stands before and behind them for text or for a sound.

Source: arXiv:2110.07205, section 2; modeling_speecht5.py of the reference.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data

POSITIONS = "encode_positions.alpha"


def find_first_frame(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The position of the first frame: behind the padding token, which no frame is unless its id is 0."""
    token: int = js.get("pad_token_id", 1)
    if token == 0:
        raise ValueError("all frames are taken for padding")
    return token + 1


class SpeechT5Stacks(sizes.Sizes):
    """The layers of both stacks, which end without a norm."""

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "encoder_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "encoder_attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("encoder_ffn_dim")
    n_decoder_layers: sizes.Natural = sizes.hf()
    n_decoder_heads: sizes.Positive = sizes.hf()
    d_decoder_head: sizes.Positive = sizes.derived(sizes.d_model_per("n_decoder_heads"))
    d_decoder_ff: sizes.Natural = sizes.hf()
    n_distances: sizes.Positive = sizes.hf("encoder_max_relative_position")

    activation: ClassVar = sizes.setting("hidden_act", usual="gelu")
    norm_eps: ClassVar = sizes.setting("layer_norm_eps", usual=1e-5)

    def encode_states(c: Any, x: Data) -> Data:
        """A norm before the layers, which all read the vectors of distances."""
        x, rows = c.norm(x, "layer_norm"), 2 * c.n_distances
        table = ops.learned_rows("embed_positions.pe_k.weight", "position", rows, c.d_head)
        shared = (table, ops.index_signed_distances(x, rows))
        return ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=shared)

    def layer(c: Any, x: Data, *shared: Data) -> Data:
        x = c.norm(x + c.attend(x, *shared), "layer_norm")
        return c.norm(x + c.feed(x, c.d_ff), "final_layer_norm")

    def attend(c: Any, x: Data, *shared: Data) -> Data:
        """Queries also meet a vector per distance. Source: arXiv:1803.02155."""
        table, index = shared

        def mix(q: Data, k: Data, v: Data) -> Data:
            bias = ops.score_keys(q, ops.to_every_head(table, c.n_heads))
            bias = ops.scale_by_root(bias, c.d_head, "over √d_head", inverse=True)
            return ops.attend(q, k, v, ops.select_by_pair(index, bias, axis=2))

        return parts.multi_head(c, x, "attention.", mix=mix)

    def decode_states(c: Any, x: Data, memory: Data) -> Data:
        stack = parts.Stack(c.n_decoder_layers, c.n_decoder_heads, c.d_decoder_head, c.d_decoder_ff)

        def layer(kind: Any, x: Data, memory: Data) -> Data:
            h = parts.multi_head(stack, x, "self_attn.", mix=ops.attend_causally)
            x = c.norm(x + h, "self_attn_layer_norm")
            x = parts.crossing(x, "", cross, memory)
            return c.norm(x + c.feed(x, c.d_decoder_ff), "final_layer_norm")

        def cross(x: Data, memory: Data) -> Data:
            h = parts.multi_head(stack, x, "encoder_attn.", memory=memory)
            return c.norm(x + h, "encoder_attn_layer_norm")

        return ops.layers(x, "layers.{layer}.", [("layer", stack.n_layers)], layer, reads=(memory,))

    def feed(c: Any, x: Data, d_ff: ops.Size) -> Data:
        names = ("feed_forward.intermediate_dense", "feed_forward.output_dense")
        return parts.plain_mlp(x, names, "mlp", d_ff, activation=c.activation, bias=True)

    norm = parts.use_layer_norm

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_heads_fill(c, "n_decoder_heads", "d_decoder_head")


def add_scaled_positions(x: Data, name: str) -> Data:
    """Sines and cosines, times one learned number."""
    return x + ops.multiply_vector(ops.sinusoids(x, "interleaved"), name, "position")


class ReadsText(SpeechT5Stacks):
    """The encoder reads text."""

    vocab_size: sizes.Positive = sizes.hf()

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_inside(1),)

    def list_sources(c) -> tuple[Data, ...]:
        return ()

    def read(c, tokens: Data, *sources: Data) -> Data:
        x = ops.lookup(tokens, "prenet.embed_tokens.weight", "embedding", c.vocab_size, c.d_model)
        return ops.block(add_scaled_positions(x, "prenet." + POSITIONS), "wrapped_encoder.", c.encode_states)


class HearsSound(SpeechT5Stacks, parts.PlacedByConvolution):
    """The encoder reads the samples of a sound."""

    first_frame: ClassVar = sizes.setting(default=find_first_frame)

    def list_sources(c) -> tuple[Data, ...]:
        return (ops.given("samples", "frames", 1), *c.list_masks())

    def read(c, tokens: Data, *sources: Data) -> Data:
        samples, *masked = sources
        x = ops.block(samples, "prenet.", c.prepare, reads=masked)
        x = ops.rename_weights(x, replaced=(("feature_extractor", "feature_encoder"),))
        return ops.block(x, "wrapped_encoder.", c.encode_states)

    def prepare(c, samples: Data, *masked: Data) -> Data:
        """Features with two kinds of positions."""
        x = c.project(c.norm_features(c.convolve(samples)))
        for mask in masked:
            x = ops.insert_learned(x, mask, "masked_spec_embed", 1)
        x = x + c.place(x)
        return x + ops.sinusoids(x, slowest="base", offset=c.first_frame)

    def check(c) -> None:
        super().check()
        parts.PlacedByConvolution.check(c)
        sizes.check_sinusoids(c)


class SpeaksMels(SpeechT5Stacks):
    """The decoder reads and gives mel frames, in the voice of a speaker."""

    base_model: ClassVar[str] = ""

    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    prenet_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(range(sizes.check_no_types(js, "speech_decoder_prenet_layers", 2)))
    )
    d_prenet: sizes.Positive = sizes.hf("speech_decoder_prenet_units")
    d_speaker: sizes.Natural = sizes.hf("speaker_embedding_dim")
    postnet_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(range(sizes.check_no_types(js, "speech_decoder_postnet_layers", 5)))
    )
    d_postnet: sizes.Positive = sizes.hf("speech_decoder_postnet_units")
    d_postnet_conv: sizes.Positive = sizes.hf("speech_decoder_postnet_kernel")
    n_reduced: sizes.Positive = sizes.hf("reduction_factor")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        mels, speaker = ops.given("mel frames", "frames", c.n_mels), ops.given("speaker", 1, c.d_speaker)

        def speak(mels: Data, memory: Data, speaker: Data) -> Data:
            x = ops.block(mels, "prenet.", c.prepare_mels, reads=(speaker,))
            return ops.block(x, "wrapped_decoder.", c.decode_states, reads=(memory,))

        memory = ops.block(tokens, "speecht5.encoder.", c.read, reads=c.list_sources(), part="encoder")
        x = ops.block(mels, "speecht5.decoder.", speak, reads=(memory, speaker), part="decoder")
        return ops.block(x, "speech_decoder_postnet.", c.finish, part="decoder")

    def prepare_mels(c, x: Data, speaker: Data) -> Data:
        """The mel frame before each, and the speaker, in vectors of the decoder's size."""
        for i in c.prenet_layers:
            x = ops.activate(ops.linear(x, f"layers.{i}", "other", c.d_prenet, bias=True), "relu")
        x = add_scaled_positions(ops.linear(x, "final_layer", "other", c.d_model, bias=True), POSITIONS)
        x = ops.join(x, ops.expand_to_tokens(x, ops.plain_norm(speaker, "l2", 0.0)))
        return ops.activate(ops.linear(x, "speaker_embeds_layer", "other", c.d_model, bias=True), "relu")

    def finish(c, x: Data) -> Data:
        """Several mel frames for each state, refined by convolutions, and whether they are the last ones."""
        mels = ops.unfold_rows(ops.linear(x, "feat_out", "other", c.n_mels * c.n_reduced, bias=True), c.n_mels)
        stop, h = ops.linear(x, "prob_out", "other", c.n_reduced, bias=True), mels
        for i in c.postnet_layers:
            is_last = i == c.postnet_layers[-1]
            channels = c.n_mels if is_last else c.d_postnet
            h = ops.convolve_tokens(h, f"layers.{i}.conv", channels, c.d_postnet_conv, component="other", bias=False)
            h = ops.batch_norm(h, f"layers.{i}.batch_norm", 1e-5)
            h = h if is_last else ops.activate(h, "tanh")
        return ops.bundle(mels + h, stop)

    def check(c) -> None:
        super().check()
        if not c.prenet_layers and c.d_prenet != c.n_mels:
            expected = f"{c.n_mels}, as num_mel_bins, without layers before the decoder"
            raise sizes.make_value_error(c.d_prenet, FieldName("d_prenet"), expected)
        if c.postnet_layers and c.d_postnet_conv % 2 == 0:
            raise ParamcountError(f"= {c.d_postnet_conv}", where=FieldName("d_postnet_conv"), expected="an odd number")


def scale_tokens(js: sizes.ConfigJson, c: Any) -> float:
    return sqrt(c.d_model) if js.get("scale_embedding", False) else 1.0

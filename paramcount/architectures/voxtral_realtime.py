"""Voxtral Realtime: a causal audio encoder, whose vectors are added to those of the text, token by token."""

from typing import Any

from paramcount.flow import (
    Data,
    activate,
    block,
    convolve_frames,
    expand_to_tokens,
    fixed_sinusoids,
    given,
    layers,
    linear,
    merge_rows,
    rms_norm,
    rows_of_tokens,
    scale_by,
)
from paramcount.parts.attentions import attention
from paramcount.parts.composite import FORMER_PREFIXES
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import (
    Flag,
    Natural,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    flag,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import one_of, padding_in_table
from paramcount.sizes.fields import before_lm_head

D_DELAY = 32  # between the two matrices that read the delay


class VoxtralStreamEars(Sizes):
    """Whisper's convolutions over frames of the past, layers with rotary positions and a window; keys have no bias."""

    config_class = "VoxtralRealtimeEncoderConfig"

    section = "audio_config"
    rotated = "d_head"
    unused_keys = ("vocab_size",)
    conditions = (one_of("model_type", ("voxtral_realtime_encoder",), "voxtral_realtime_encoder"),)

    d_model: Positive = hf("d_model", "hidden_size")
    n_layers: Natural = hf("encoder_layers", "num_hidden_layers")
    n_heads: Positive = hf("encoder_attention_heads", "num_key_value_heads", "num_attention_heads", n_aliases=2)
    d_head: Positive = hf()
    d_ff: Natural = hf("encoder_ffn_dim", "intermediate_size")
    n_mels: Positive = hf("num_mel_bins")
    window: Positive = hf()

    activation = setting("hidden_act", default="silu")
    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=1500)

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames / 2, d_model]."""
        x = activate(convolve_frames(frames, "embedder.conv1", c.d_model, 3, zeros="before"), "gelu")
        x = activate(convolve_frames(x, "embedder.conv2", c.d_model, 3, stride=2, zeros="before"), "gelu")
        x = layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return rms_norm(x, "norm", c.norm_eps)

    def layer(c, x: Data) -> Data:
        h = rms_norm(x, "self_attn_layer_norm", c.norm_eps)
        x = x + attention(c, h, "self_attn.", bias=True, k_bias=False, cached=False, causal=True, window=c.window)
        h = rms_norm(x, "final_layer_norm", c.norm_eps)
        return x + gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, down_bias=True)


class VoxtralStreamText(AttentionDecoder):
    """Mistral, whose MLPs also read how many tokens the text is behind the sound."""

    config_class = "VoxtralRealtimeTextConfig"

    section = "text_config"
    rotated = "d_head"
    conditions = (one_of("model_type", ("voxtral_realtime_text",), "voxtral_realtime_text"), padding_in_table(None))
    defaults = {"vocab_size": 131072, "d_model": 3072, "n_layers": 26}

    n_kv_heads: Positive = hf()
    d_head: Positive = hf(absent=128, null=d_model_per_head)
    d_ff: Natural = hf(absent=9216)
    window: Positive | None = hf(absent=8192)
    tie_word_embeddings: Flag = derived(lambda js, c: flag(js, "tie_word_embeddings", True), at_root=True)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000.0, positions=131072)

    def layer(c, x: Data, delay: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        h = c.norm(x, "post_attention_layernorm")
        scale = activate(linear(delay, "ada_rms_norm.linear1", "mlp", D_DELAY), "gelu")
        scale = scale_by(linear(scale, "ada_rms_norm.linear2", "mlp", c.d_model), 1.0, "plus 1", shift=1.0)
        return x + c.gated_mlp(h * expand_to_tokens(h, scale))


class VoxtralRealtime(Sizes):
    """Source: arXiv:2602.11298, section 2; modeling_voxtral_realtime.py of the reference."""

    reference = "VoxtralRealtimeForConditionalGeneration"
    reference_names = FORMER_PREFIXES
    unused_keys = ("audio_length_per_tok",)

    audio: VoxtralStreamEars
    text: VoxtralStreamText
    n_merged: Positive = hf("downsample_factor")

    activation = setting("projector_hidden_act", default="gelu")
    delay = setting("default_num_delay_tokens", default=6)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def read(tokens: Data, sound: Data) -> Data:
            x = c.text.embed(tokens) + rows_of_tokens(tokens, sound)
            out = c.text.head(c.text.transform(x, fixed_sinusoids(x, c.delay)))
            return out if head else before_lm_head(out)

        return block(tokens, "language_model.", read, reads=(c.hear(),), root=True)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def hear(c) -> Data:
        """Log-mel frames to a vector of the language model's size for every token."""
        frames = given("log-mel frames", "frames", c.audio.n_mels)
        sound = block(frames, "audio_tower.", c.audio.forward, part="audio")
        return block(sound, "multi_modal_projector.", c.project, part="projector")

    def project(c: Any, x: Data) -> Data:
        x = merge_rows(x, c.n_merged)
        h = activate(linear(x, "linear_1", "projector", c.text.d_model), c.activation)
        return linear(h, "linear_2", "projector", c.text.d_model)

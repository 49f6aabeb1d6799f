"""Voxtral Realtime: a causal audio encoder, whose vectors are added to those of the text, token by token."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

D_DELAY = 32  # between the two matrices that read the delay


class VoxtralStreamEars(sizes.Sizes):
    """Whisper's convolutions over frames of the past, layers with rotary positions and a window; keys have no bias."""

    config_class = "VoxtralRealtimeEncoderConfig"

    section = "audio_config"
    rotated = "d_head"
    unused_keys = ("vocab_size",)
    conditions = (sizes.one_of("model_type", ("voxtral_realtime_encoder",), "voxtral_realtime_encoder"),)

    d_model: sizes.Positive = sizes.hf("d_model", "hidden_size")
    n_layers: sizes.Natural = sizes.hf("encoder_layers", "num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf(
        "encoder_attention_heads", "num_key_value_heads", "num_attention_heads", n_aliases=2
    )
    d_head: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf("encoder_ffn_dim", "intermediate_size")
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    window: sizes.Positive = sizes.hf()

    activation = sizes.setting("hidden_act")
    norm_eps = sizes.setting("rms_norm_eps")
    rope = sizes.rotary(positions=1500)

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames / 2, d_model]."""
        x = ops.activate(ops.convolve_frames(frames, "embedder.conv1", c.d_model, 3, padding=ops.BEFORE), "gelu")
        x = ops.activate(ops.convolve_frames(x, "embedder.conv2", c.d_model, 3, stride=2, padding=ops.BEFORE), "gelu")
        x = ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return ops.rms_norm(x, "norm", c.norm_eps)

    def layer(c, x: Data) -> Data:
        h = ops.rms_norm(x, "self_attn_layer_norm", c.norm_eps)
        q, k, v = parts.project_heads(c, h, "self_attn.", bias=True, k_bias=False)  # [n, n_heads, d_head]
        a = ops.attend(ops.rope(q, c.rope), ops.rope(k, c.rope), v, mask=ops.see_earlier(c.window))
        x = x + parts.project_output(a, "self_attn.o_proj", c.d_model, bias=True)
        h = ops.rms_norm(x, "final_layer_norm", c.norm_eps)
        gate = ops.activate(ops.linear(h, "mlp.gate_proj", "mlp.gate", c.d_ff), c.activation)
        up = ops.linear(h, "mlp.up_proj", "mlp.up", c.d_ff)
        return x + ops.linear(gate * up, "mlp.down_proj", "mlp.down", c.d_model, bias=True)


class VoxtralStreamText(parts.AttentionDecoder):
    """Mistral, whose MLPs also read how many tokens the text is behind the sound."""

    config_class = "VoxtralRealtimeTextConfig"

    section = "text_config"
    rotated = "d_head"
    conditions = (
        sizes.one_of("model_type", ("voxtral_realtime_text",), "voxtral_realtime_text"),
        sizes.padding_in_table(None),
    )
    defaults = {"vocab_size": 131072, "d_model": 3072, "n_layers": 26}

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=128, null=sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf(absent=9216)
    window: sizes.Positive | None = sizes.hf(absent=8192)
    tie_word_embeddings: sizes.Flag = sizes.derived(
        lambda js, c: sizes.flag(js, "tie_word_embeddings", True), at_root=True
    )

    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.rotary(1_000_000.0, positions=131072)

    def layer(c, x: Data, delay: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        h = c.norm(x, "post_attention_layernorm")
        scale = ops.activate(ops.linear(delay, "ada_rms_norm.linear1", "mlp", D_DELAY), "gelu")
        scale = ops.scale_by(ops.linear(scale, "ada_rms_norm.linear2", "mlp", c.d_model), 1.0, "plus 1", shift=1.0)
        return x + c.gated_mlp(h * ops.expand_to_tokens(h, scale))


class VoxtralRealtime(parts.Headed):
    """Source: arXiv:2602.11298, section 2; modeling_voxtral_realtime.py of the reference."""

    reference = "VoxtralRealtimeForConditionalGeneration"
    reference_names = parts.FORMER_PREFIXES
    unused_keys = ("audio_length_per_tok",)

    audio: VoxtralStreamEars
    text: VoxtralStreamText
    n_merged: sizes.Positive = sizes.hf("downsample_factor")

    activation = sizes.setting("projector_hidden_act")
    delay = sizes.setting("default_num_delay_tokens")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        def read(tokens: Data, sound: Data) -> Data:
            x = c.text.embed(tokens) + ops.rows_of_tokens(tokens, sound)
            out = c.text.head(c.text.transform(x, ops.fixed_sinusoids(x, c.delay)))
            return out if head else sizes.before_lm_head(out)

        return ops.as_model(ops.block(tokens, "language_model.", read, reads=(c.hear(),)))

    def hear(c) -> Data:
        """Log-mel frames to a vector of the language model's size for every token."""
        frames = ops.given("log-mel frames", "frames", c.audio.n_mels)
        sound = ops.block(frames, "audio_tower.", c.audio.forward, part="audio")
        return ops.block(sound, "multi_modal_projector.", c.project, part="projector")

    def project(c: Any, x: Data) -> Data:
        x = ops.merge_rows(x, c.n_merged)
        h = ops.activate(ops.linear(x, "linear_1", "projector", c.text.d_model), c.activation)
        return ops.linear(h, "linear_2", "projector", c.text.d_model)

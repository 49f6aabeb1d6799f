"""GLM-ASR: Whisper's convolutions, layers with rotary positions, four of whose frames become one vector of Llama."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

GLM_ASR = {
    "vocab_size": 59264,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
}


class GlmAsrEars(sizes.Sizes):
    """Keys have no bias. Source: GlmAsrEncoder of the reference."""

    config_class = "GlmAsrEncoderConfig"

    section = "audio_config"
    conditions = (sizes.one_of("model_type", ("glmasr_encoder",), "glmasr_encoder"),)

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5))
    d_ff: sizes.Natural = sizes.hf()
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")

    activation = sizes.setting("hidden_act")
    rope = sizes.rotary(positions=1500, share=0.5)

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = ops.activate(ops.convolve_frames(frames, "conv1", c.d_model, 3), "gelu")
        x = ops.activate(ops.convolve_frames(x, "conv2", c.d_model, 3, stride=2), "gelu")
        x = ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return ops.layer_norm(x, "norm", 1e-5)

    def layer(c, x: Data) -> Data:
        h = ops.layer_norm(x, "input_layernorm", 1e-5)
        q, k, v = parts.project_heads(c, h, "self_attn.", bias=True, k_bias=False)  # [n, n_heads, d_head]
        a = ops.attend(c.rotate(q), c.rotate(k), v)  # [n, n_heads, d_head]
        x = x + parts.project_output(a, "self_attn.o_proj", c.d_model, bias=True)
        return x + parts.encoder_mlp(c, ops.layer_norm(x, "post_attention_layernorm", 1e-5))

    def rotate(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope)


class GlmAsr(parts.FormerAudioLanguageModel):
    """Source: modeling_glmasr.py of the reference."""

    reference = "GlmAsrForConditionalGeneration"
    sections = sizes.Sections(
        "llama", default_tie=True, default_section=GLM_ASR, fills_missing_keys=True, other_sections=("audio_config",)
    )
    added_keys = {
        "language": {
            "rms_norm_eps": 1e-5,
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
            "max_position_embeddings": 8192,
        }
    }

    audio: GlmAsrEars

    activation = sizes.setting("projector_hidden_act")

    def project(c: Any, x: Data) -> Data:
        return c.widen(Data(ops.MergeRows(), (x,), ("audio tokens", c.audio.d_ff)), 2 * c.language.d_model)

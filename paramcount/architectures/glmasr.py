"""GLM-ASR: Whisper's convolutions, layers with rotary positions, four of whose frames become one vector of Llama."""

from typing import Any

from paramcount.flow import Data, Reshape, activate, convolve_frames, layer_norm, layers, linear
from paramcount.parts.attentions import attention, partial_rope
from paramcount.parts.composite import FORMER_PREFIXES, AudioLanguageModel
from paramcount.parts.vision import encoder_mlp
from paramcount.sizes import Natural, Positive, Sizes, d_model_per_head, derived, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import one_of
from paramcount.sizes.rotary_sizes import rotary_width
from paramcount.sizes.sections import Sections

GLM_ASR = {
    "vocab_size": 59264,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
}


class GlmAsrEars(Sizes):
    """Keys have no bias. Source: GlmAsrEncoder of the reference."""

    config_class = "GlmAsrEncoderConfig"

    section = "audio_config"
    conditions = (one_of("model_type", ("glmasr_encoder",), "glmasr_encoder"),)

    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)
    d_rope: Natural = derived(rotary_width(0.5))
    d_ff: Natural = hf()
    n_mels: Positive = hf("num_mel_bins")

    activation = setting("hidden_act", default="gelu")
    rope = rotary(positions=1500, share=0.5)

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = activate(convolve_frames(frames, "conv1", c.d_model, 3), "gelu")
        x = activate(convolve_frames(x, "conv2", c.d_model, 3, stride=2), "gelu")
        x = layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return layer_norm(x, "norm", 1e-5)

    def layer(c, x: Data) -> Data:
        h = layer_norm(x, "input_layernorm", 1e-5)
        x = x + attention(c, h, "self_attn.", bias=True, k_bias=False, cached=False, rotate=c.rotate)
        return x + encoder_mlp(c, layer_norm(x, "post_attention_layernorm", 1e-5))

    def rotate(c, x: Data) -> Data:
        return partial_rope(x, c.d_rope, c.rope)


class GlmAsr(AudioLanguageModel):
    """Source: modeling_glmasr.py of the reference."""

    reference = "GlmAsrForConditionalGeneration"
    sections = Sections(
        "llama", default_tie=True, default_section=GLM_ASR, fills_missing_keys=True, other_sections=("audio_config",)
    )
    reference_names = FORMER_PREFIXES
    added_keys = {
        "language": {
            "rms_norm_eps": 1e-5,
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
            "max_position_embeddings": 8192,
        }
    }

    audio: GlmAsrEars

    audio_token = setting("audio_token_id", default=59260)
    activation = setting("projector_hidden_act", default="gelu")

    def project(c: Any, x: Data) -> Data:
        d_model = c.language.d_model
        x = Data(Reshape("merged rows"), (x,), ("audio tokens", c.audio.d_ff))
        h = activate(linear(x, "linear_1", "projector", 2 * d_model, bias=True), c.activation)
        return linear(h, "linear_2", "projector", d_model, bias=True)

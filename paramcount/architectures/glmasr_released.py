"""GLM-ASR as its authors release it: Whisper's encoder with rotary positions, several of whose states become one vector
of Llama, between two learned ones.
"""

from typing import Any

from paramcount.architectures.ultravox import WhisperEars
from paramcount.declare import Data, ops, parts, sizes


class GlmasrEars(WhisperEars):
    """Source: modeling_audio.py of zai-org/GLM-ASR-Nano-2512. Its table of positions is there if nothing reads it."""

    section = "whisper_config"
    last_norm = ""

    rotates: sizes.Flag = sizes.hf("/use_rope", absent=False)
    d_rope: sizes.Natural = sizes.derived(lambda js, c: c["d_head"] // 2)

    rope = sizes.setting(default=lambda config, c: ops.Rope(10_000.0))

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = ops.activate(ops.convolve_frames(frames, "conv1", c.d_model, 3), "gelu")
        x = ops.activate(ops.convolve_frames(x, "conv2", c.d_model, 3, stride=2), "gelu")
        if not c.rotates:
            x = x + ops.position_table(x, "embed_positions.weight", c.n_frames)
        return ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.encoder_layer(x))

    def encoder_layer(c, x: Data) -> Data:
        h = c.norm(x, "self_attn_layer_norm")
        q, k, v = parts.project_heads(c, h, "self_attn.", bias=True, k_bias=False)  # [n, n_heads, d_head]
        a = ops.attend(c.turn(q), c.turn(k), v)  # [n, n_heads, d_head]
        x = x + parts.project_output(a, "self_attn.out_proj", c.d_model, bias=True)
        h = c.norm(x, "final_layer_norm")
        return x + parts.plain_mlp(h, ("fc1", "fc2"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def turn(c, x: Data) -> Data:
        return parts.partial_rope(x, c.d_rope, c.rope, "interleaved") if c.rotates else x


class GlmasrReleased(parts.FormerAudioLanguageModel):
    """Source: modeling_glmasr.py of zai-org/GLM-ASR-Nano-2512."""

    reference = "GlmasrModel of zai-org/GLM-ASR-Nano-2512"
    base_model = ""
    model_types = ("glmasr_released",)
    released_as = {"glmasr": ("GlmasrModel", "modeling_glmasr", "whisper_config")}
    sections = sizes.Sections(
        "llama", section="lm_config", tie_rule="text", ignores_model_type=True, other_sections=("whisper_config",)
    )
    reference_names = {}
    encoder_prefix = "audio_encoder.whisper."
    projector_prefix = "audio_encoder."
    language_prefix = ""
    projector = ("adapting.0", "adapting.2")
    conditions = (sizes.one_of("mlp_adapter_act", ("gelu", "relu", "selu"), "gelu"),)

    audio: GlmasrEars
    n_merged: sizes.Positive = sizes.hf("merge_factor", absent=2)

    audio_token = ops.Unknown("audio_token")  # places of the sounds are given beside the tokens
    activation = sizes.setting("mlp_adapter_act", default="gelu")

    def project(c: Any, x: Data) -> Data:
        x = ops.layer_norm(x, "layer_norm", 1e-5)
        x = Data(ops.MergeRows(), (x,), ("audio tokens", c.n_merged * c.audio.d_model))
        x = c.widen(x, 2 * c.language.d_model)
        return ops.elementwise(x, "separator", "audio_bos_eos_token.weight", "projector", 2, c.language.d_model)

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if not c.audio.rotates:
            return ()
        frames = ops.given("states", "frames", c.audio.d_model)
        name = c.encoder_prefix + "embed_positions.weight"
        unread = ops.block(frames, "", lambda x: ops.position_table(x, name, c.audio.n_frames), part="audio")
        return (ops.Unreachable(unread, "with use_rope the encoder adds no position embedding"),)

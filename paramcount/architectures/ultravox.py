"""Ultravox: Whisper's encoder, of which several states become one vector of a language model that config.json names."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value


def text_is_given(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The code downloads the config of another model by its name, and wraps both halves in LoRA layers if asked to."""
    if js.get("text_model_id") is not None and not js.get("text_config"):
        named = describe_value(js["text_model_id"])
        expected = f"the config of {named}, which text_model_id names"
        raise ParamcountError("is missing", where="text_config", expected=expected)
    if js.get("audio_model_id") is not None and not js.get("audio_config"):
        expected = f"the config of {describe_value(js['audio_model_id'])}, which audio_model_id names"
        raise ParamcountError("is missing", where="audio_config", expected=expected)
    for key in ("text_model_lora_config", "audio_model_lora_config"):
        rank = (js.get(key) or {}).get("r", 0)
        if rank:
            problem = f"= {describe_value(rank)} adds LoRA layers, which are not supported"
            raise ParamcountError(problem, where=f"{key}.r", expected="0")


def width(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of the projector after its activation, which may be gated."""
    n = js.get("hidden_size", 4096)
    if type(n) is not int or n < 2 or (c["gated"] and n % 2):
        raise sizes.make_value_error(n, "hidden_size", "an even integer" if c["gated"] else "a positive integer")
    return n // 2 if c["gated"] else n


class WhisperEars(parts.Ears):
    """Whisper's encoder, out of the config of the whole model."""

    config_class = "WhisperConfig"
    conditions = (sizes.one_of("model_type", ("whisper",), "whisper"),)
    unused_keys = (
        "vocab_size", "decoder_attention_heads", "decoder_ffn_dim", "decoder_layers", "max_target_positions",
        "classifier_proj_size", "median_filter_width",
    )  # fmt: skip


class Ultravox(parts.FormerAudioLanguageModel):
    """Source: ultravox_model.py of fixie-ai/ultravox-v0_6-llama-3_1-8b."""

    reference = "UltravoxModel of fixie-ai/ultravox-v0_6-llama-3_1-8b"
    base_model = ""
    sections = sizes.Sections("llama", tie_rule="text", other_sections=("audio_config",))
    conditions = (text_is_given,)
    unused_keys = ("vocab_size",)

    audio: WhisperEars
    n_stacked: sizes.Positive = sizes.hf("stack_factor", absent=8)
    gated: sizes.Flag = sizes.derived(lambda js, c: js.get("projector_act", "swiglu") == "swiglu")
    d_projector: sizes.Positive = sizes.derived(width)
    early_norm: sizes.Flag = sizes.hf("projector_ln_mid", absent=False)

    audio_token = sizes.setting("audio_token_index", default=None)
    activation = sizes.setting("projector_act", default="swiglu")

    def project(c: Any, x: Data) -> Data:
        x = Data("stack frames", (x,), ("audio tokens", c.n_stacked * c.audio.d_model))  # zeros fill the last
        x = ops.rms_norm(x, "ln_pre", 1e-6)
        if c.gated:
            up, gate = ops.fused(x, "linear_1", {"mlp.up": c.d_projector, "mlp.gate": c.d_projector})
            x = ops.activate(gate, "silu") * up
        else:
            x = ops.activate(ops.linear(x, "linear_1", "projector", c.d_projector), c.activation)
        if c.early_norm:
            x = ops.rms_norm(x, "ln_mid", 1e-6)
        x = ops.linear(x, "linear_2", "projector", c.language.d_model)
        return x if c.early_norm else ops.rms_norm(x, "ln_post", 1e-6)

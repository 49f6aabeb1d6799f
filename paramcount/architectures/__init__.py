"""Architectures by name: one file for each checkpoint layout, imported when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from paramcount.errors import ParamcountError, near, printable

if TYPE_CHECKING:
    from paramcount.sizes import Sizes

# {model type, as in config.json: (module, class)}
ARCHITECTURES = {
    "deepseek": ("deepseek", "DeepseekMoE"),
    "deepseek_v2": ("deepseek_v2", "DeepseekV2"),
    "deepseek_v3": ("deepseek_v3", "DeepseekV3"),
    "gpt2": ("gpt2", "GPT2"),
    "gpt_oss": ("gpt_oss", "GptOss"),
    "llama": ("llama", "Llama"),
    "mistral": ("mistral", "Mistral"),
    "mixtral": ("mixtral", "Mixtral"),
    "mllama": ("mllama", "Mllama"),
    "openai-gpt": ("openai_gpt", "OpenAIGPT"),
    "qwen": ("qwen", "Qwen"),
    "qwen2": ("qwen2", "Qwen2"),
    "qwen2_moe": ("qwen2_moe", "Qwen2MoE"),
    "qwen3": ("qwen3", "Qwen3"),
    "qwen3_moe": ("qwen3_moe", "Qwen3MoE"),
}


def architecture(name: object) -> type[Sizes]:
    """The class that declares an architecture.

    Raises: ParamcountError for an unknown one, with the nearest.
    """
    if not isinstance(name, str) or name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ParamcountError(f"unknown architecture {printable(name, 60)}", accepted=known, nearest=near(name, ARCHITECTURES))
    module, cls = ARCHITECTURES[name]
    found: type[Sizes] = getattr(import_module(f"paramcount.architectures.{module}"), cls)
    return found

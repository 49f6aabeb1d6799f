"""IQuest Coder: Llama under another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.llama import Llama
from paramcount.errors import ParamcountError, describe_value
from paramcount.sizes import Condition, Positive, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.setting_fields import rotary, setting


def plain_attention(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    if js.get("clip_qkv") is not None or js.get("use_sliding_window"):
        key = "use_sliding_window" if js.get("use_sliding_window") else "clip_qkv"
        raise ParamcountError(
            f"= {describe_value(js[key])}", where=key, expected="no such key, because the reference does not support it"
        )


class IQuestCoder(Llama):
    """Source: configuration_iquestcoder.py of the reference, which builds a LlamaForCausalLM."""

    conditions: ClassVar[tuple[Condition, ...]] = (plain_attention, padding_in_table(None))
    defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 76800,
        "d_model": 5120,
        "n_layers": 80,
        "n_heads": 40,
        "d_ff": 27648,
    }

    n_kv_heads: Positive = hf(absent=8, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=128, null=d_model_per_head)

    norm_eps: ClassVar = setting("rms_norm_eps", default=1e-5)
    rope: ClassVar = rotary(positions=131072)

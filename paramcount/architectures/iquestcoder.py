"""IQuest Coder: Llama under another name."""

from paramcount.architectures.llama import Llama
from paramcount.errors import ParamcountError, describe_value
from paramcount.sizes import ConfigJson, FieldValues, Positive, d_model_per_head, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table


def plain_attention(js: ConfigJson, c: FieldValues) -> None:
    if js.get("clip_qkv") is not None or js.get("use_sliding_window"):
        key = "use_sliding_window" if js.get("use_sliding_window") else "clip_qkv"
        raise ParamcountError(
            f"= {describe_value(js[key])}", where=key, expected="no such key, because the reference does not support it"
        )


class IQuestCoder(Llama):
    """Source: configuration_iquestcoder.py of the reference, which builds a LlamaForCausalLM."""

    model_types = ("iquestcoder",)
    gguf = "llama"
    is_section_type = True

    conditions = (plain_attention, padding_in_table(None))
    defaults = {"vocab_size": 76800, "d_model": 5120, "n_layers": 80, "n_heads": 40}

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_head: Positive = hf(null=d_model_per_head)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=131072)

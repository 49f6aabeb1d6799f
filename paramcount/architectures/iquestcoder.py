"""IQuest Coder: Llama under another name."""

from paramcount.architectures.llama import Llama
from paramcount.declare import sizes


def plain_attention(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("clip_qkv") is not None or js.get("use_sliding_window"):
        key = "use_sliding_window" if js.get("use_sliding_window") else "clip_qkv"
        raise sizes.make_value_error(js[key], key, "no such key, because the reference does not support it")


class IQuestCoder(Llama):
    """Source: configuration_iquestcoder.py of the reference, which builds a LlamaForCausalLM."""

    model_types = ("iquestcoder",)
    gguf = "llama"

    conditions = (plain_attention, sizes.padding_in_table(None))
    defaults = {"vocab_size": 76800, "d_model": 5120, "n_layers": 80, "n_heads": 40}

    d_head: sizes.Positive = sizes.hf(null=sizes.d_model_per_head)

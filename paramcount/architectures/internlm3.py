"""InternLM 3: Llama under other names for its two kinds of biases, which come together or not at all."""

from paramcount.architectures.llama import Llama
from paramcount.declare import sizes
from paramcount.errors import FieldName, ParamcountError


class InternLM3(Llama):
    """Source: configuration_internlm3.py of the reference, which builds a LlamaForCausalLM."""

    model_types = ("internlm3",)
    gguf = "llama"

    conditions = (sizes.padding_in_table(2),)
    defaults = {"vocab_size": 128512, "n_layers": 48}

    d_head: sizes.Positive = sizes.hf(null=sizes.d_model_per_head)
    attention_bias: sizes.Flag = sizes.hf("qkv_bias", "attention_bias")
    mlp_bias: sizes.Flag = sizes.hf("bias", "mlp_bias")

    def check(c) -> None:
        super().check()
        if c.attention_bias != c.mlp_bias:
            raise ParamcountError(
                "differs from " + FieldName("mlp_bias"),
                where=FieldName("attention_bias"),
                expected="both true or both false",
            )

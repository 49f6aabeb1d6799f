"""InternLM 3: Llama under other names for its two kinds of biases, which come together or not at all."""

from paramcount.architectures.llama import Llama
from paramcount.errors import FieldName, ParamcountError
from paramcount.sizes import Flag, Positive, d_model_per_head, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table


class InternLM3(Llama):
    """Source: configuration_internlm3.py of the reference, which builds a LlamaForCausalLM."""

    model_types = ("internlm3",)
    gguf = "llama"
    is_section_type = True

    conditions = (padding_in_table(2),)
    defaults = {"vocab_size": 128512, "n_layers": 48}

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_head: Positive = hf(null=d_model_per_head)
    attention_bias: Flag = hf("qkv_bias", "attention_bias")
    mlp_bias: Flag = hf("bias", "mlp_bias")

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=32768)

    def check(c) -> None:
        super().check()
        if c.attention_bias != c.mlp_bias:
            raise ParamcountError(
                "differs from " + FieldName("mlp_bias"),
                where=FieldName("attention_bias"),
                expected="both true or both false",
            )

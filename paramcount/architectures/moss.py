"""MOSS: CodeGen's layers, q, k and v in one matrix laid out for four devices."""

from typing import Any, ClassVar

from paramcount.architectures.gptj import CodeGen
from paramcount.declare import sizes


class Moss(CodeGen):
    """Source: modeling_moss.py of github OpenMOSS/MOSS."""

    reference = "MossForCausalLM of fnlp/moss-moon-003-sft"
    conditions = ()
    config_class = ""
    defaults: ClassVar[dict[str, Any]] = {
        "vocab_size": 107008, "d_model": 4096, "n_layers": 28, "n_heads": 16, "d_rope": 64, "n_positions": 2048,
        "tie_word_embeddings": False,
    }  # fmt: skip

    d_rope: sizes.Positive = sizes.hf("rotary_dim", null=lambda js, c: c["d_head"])

    activation = sizes.setting("activation_function", default="gelu_new")
    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)

"""Multi-token-prediction layers as draft models of their own, as inference engines load them beside their target.

A config.json is that of the target but for its class. The token embedding and the LM head are the target's.
"""

from typing import Any, ClassVar

from paramcount.architectures.deepseek_v3 import DeepseekV3
from paramcount.architectures.glm4_moe import Glm4Moe
from paramcount.architectures.qwen2 import MiMo
from paramcount.declare import Data, sizes


class MtpDraft(sizes.Sizes):
    """The MTP layers of the class that it stands before."""

    is_draft = True
    is_section_type = False
    base_model = ""

    mtp: ClassVar[Any] = lambda c, tokens: None

    def forward(c, tokens: Data) -> Data:
        return super().mtp(tokens)  # type: ignore[return-value]  # there is one layer at least


class DeepSeekMtp(MtpDraft, DeepseekV3):
    """Source: DeepSeekMTP of vLLM, deepseek_mtp.py; DeepseekV3ForCausalLMNextN of SGLang, deepseek_nextn.py."""

    reference = "DeepSeekMTPModel of vllm-project/vllm"
    model_types = ("deepseek_mtp",)
    equivalent_classes = ("DeepseekV3ForCausalLMNextN",)

    n_mtp_layers: sizes.Positive = sizes.hf("num_nextn_predict_layers", "num_mtp_layers")


class Glm4MoeMtp(MtpDraft, Glm4Moe):
    """Source: Glm4MoeMTP of vLLM, glm4_moe_mtp.py; Glm4MoeForCausalLMNextN of SGLang, glm4_moe_nextn.py."""

    reference = "Glm4MoeMTPModel of vllm-project/vllm"
    model_types = ("glm4_moe_mtp",)
    equivalent_classes = ("Glm4MoeForCausalLMNextN",)

    n_mtp_layers: sizes.Positive = sizes.hf("num_nextn_predict_layers", "num_mtp_layers")


class MiMoMtp(MtpDraft, MiMo):
    """Source: MiMoMTP of vLLM and of SGLang, mimo_mtp.py."""

    reference = "MiMoMTPModel of vllm-project/vllm"
    model_types = ("mimo_mtp",)
    equivalent_classes = ("MiMoMTP",)

    n_mtp_layers: sizes.Positive = sizes.hf("num_nextn_predict_layers")

"""VaultGemma: Gemma 2 without the norms behind attention and MLP, trained with differential privacy."""

from paramcount.architectures.gemma import gelu_mlp
from paramcount.architectures.gemma2 import Gemma2
from paramcount.flow import Data


class VaultGemma(Gemma2):
    """Source: modeling_vaultgemma.py of the reference."""

    reference = "VaultGemmaForCausalLM"

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"), kind)
        return x + gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm"))

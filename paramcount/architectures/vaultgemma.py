"""VaultGemma: Gemma 2 without the norms behind attention and MLP, trained with differential privacy."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.architectures.gemma2 import Gemma2, window
from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm


class VaultGemma(Gemma2):
    """Source: modeling_vaultgemma.py of the reference."""

    reference: ClassVar[str] = "VaultGemmaForCausalLM"

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types], enter=enlarge)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", bias=c.attention_bias, window=window(c, kind)),
        lambda h: gelu_mlp(c, h),
        ("input_layernorm", "pre_feedforward_layernorm"),
    )

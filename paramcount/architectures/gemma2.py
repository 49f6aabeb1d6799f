"""Gemma 2: pre-norm and post-norm around attention and MLP, every second layer looks back over a window."""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.flow import Data, rms_norm, soft_cap
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type
from paramcount.sizes import ABSENT, Condition, Flag, Natural, Positive, Words, full_every, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides, check_sliding_or_full


def score_scale(config: Mapping[str, Any], c: Any) -> float:
    return float(config.get("query_pre_attn_scalar", 256) ** -0.5)


class Gemma2Layers(AttentionDecoder):
    """The sizes of a stack of its layers: T5Gemma has two."""

    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)
    defaults = {"d_head": 256}

    d_ff: Natural = hf()
    layer_types: Words = hf(absent=full_every(2), null=ABSENT)
    window: Positive = hf()  # the reference refuses null even if no layer uses it
    attention_bias: Flag = hf()

    activation = setting("hidden_activation", default="gelu_pytorch_tanh")
    rope = rotary(positions=8192)
    attention_scale = setting(default=score_scale)
    score_cap = setting("attn_logit_softcapping", default=50.0, nullable=True)
    logit_cap = setting("final_logit_softcapping", default=30.0, nullable=True)

    def embed(c, tokens: Data) -> Data:
        return enlarge(super().embed(tokens))

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps, offset=1.0)

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")  # though d_head is given: the reference asks it
        check_sliding_or_full(c)


class Gemma2(Gemma2Layers):
    """Source: arXiv:2408.00118, section 2."""

    reference = "Gemma2ForCausalLM"
    gguf = "gemma2"
    is_section_type = True
    task_heads = "GENERIC"

    tie_word_embeddings: Flag = hf()

    kinds = layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.attend(c.norm(x, "input_layernorm"), kind)
        x = x + c.norm(h, "post_attention_layernorm")
        h = gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm"))
        return x + c.norm(h, "post_feedforward_layernorm")

    def attend(c, x: Data, kind: str) -> Data:
        caps: Any = {"scale": c.attention_scale, "soft_cap": c.score_cap}
        return c.self_attention(x, bias=c.attention_bias, window=window(c, kind), **caps)

    def head(c, x: Data) -> Data:
        return c.cap(super().head(x))

    def cap(c, logits: Data) -> Data:
        return soft_cap(logits, c.logit_cap)


def window(c: Any, kind: str) -> Any:
    return c.window if kind == "sliding_attention" else None


class VaultGemma(Gemma2):
    """VaultGemma: Gemma 2 without the norms behind attention and MLP, trained with differential privacy.

    Source: modeling_vaultgemma.py of the reference.
    """

    reference = "VaultGemmaForCausalLM"
    model_types = ("vaultgemma",)
    is_section_type = True

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"), kind)
        return x + gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm"))

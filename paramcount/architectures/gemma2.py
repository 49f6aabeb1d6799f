"""Gemma 2: pre-norm and post-norm around attention and MLP, every second layer looks back over a window."""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.declare import Data, ops, parts, sizes


def score_scale(config: Mapping[str, Any], c: Any) -> float:
    return float(config.get("query_pre_attn_scalar", 256) ** -0.5)


class Gemma2Layers(parts.AttentionBias, parts.AttentionDecoder):
    """The sizes of a stack of its layers: T5Gemma has two."""

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(0),)
    defaults = {"d_head": 256}

    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every(2), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()  # the reference refuses null even if no layer uses it

    activation = sizes.setting("hidden_activation", default="gelu_pytorch_tanh")
    attention_scale = sizes.setting(default=score_scale)
    score_cap = sizes.setting("attn_logit_softcapping", default=50.0, nullable=True)
    logit_cap = sizes.setting("final_logit_softcapping", default=30.0, nullable=True)

    def embed(c, tokens: Data) -> Data:
        return enlarge(super().embed(tokens))

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps, offset=1.0)

    def check(c) -> None:
        sizes.check_divides(c, "n_heads", "d_model")  # though d_head is given: the reference asks it
        sizes.check_sliding_or_full(c)


class Gemma2(Gemma2Layers):
    """Source: arXiv:2408.00118, section 2."""

    reference = "Gemma2ForCausalLM"
    gguf = "gemma2"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    task_heads = "GENERIC"

    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.attend(c.norm(x, "input_layernorm"), kind)
        x = x + c.norm(h, "post_attention_layernorm")
        h = gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm"))
        return x + c.norm(h, "post_feedforward_layernorm")

    def attend(c, x: Data, kind: str) -> Data:
        mix = partial(ops.attend_causally, window=window(c, kind), scale=c.attention_scale, cap=c.score_cap)
        return c.self_attention(x, bias=c.attention_bias, mix=mix)

    def head(c, x: Data) -> Data:
        return c.cap(super().head(x))

    def cap(c, logits: Data) -> Data:
        return ops.soft_cap(logits, c.logit_cap)


def window(c: Any, kind: str) -> Any:
    return c.window if kind == "sliding_attention" else None


class VaultGemma(Gemma2):
    """VaultGemma: Gemma 2 without the norms behind attention and MLP, trained with differential privacy.

    Source: modeling_vaultgemma.py of the reference.
    """

    reference = "VaultGemmaForCausalLM"
    model_types = ("vaultgemma",)

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attend(c.norm(x, "input_layernorm"), kind)
        return x + gelu_mlp(c, c.norm(x, "pre_feedforward_layernorm"))

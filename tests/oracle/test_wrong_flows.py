"""A flow with one wrong setting, or a wrong wire, no longer computes the reference's logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paramcount.architectures.llama import Llama
from paramcount.flow import Activation, Data, Rotary, RowSoftmax, Scores, is_known
from paramcount.parts.attentions import attention
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes.setting_fields import Setting
from tests.oracle import logits, passes

Patch = pytest.MonkeyPatch
MISTAKE = 10 * logits.TOLERANCE
LLAMA = {
    **passes.make_document("llama"), "num_key_value_heads": 4, "rms_norm_eps": 0.01, "hidden_act": "silu",
    "rope_theta": 100.0,
}  # fmt: skip
MOE = {**passes.make_document("qwen3_moe"), "norm_topk_prob": True}


def change_setting(name: str, change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    """Every config has another value of one setting."""
    original = Setting.__get__

    def get(self: Setting, c: Any, owner: type | None = None) -> Any:
        value = original(self, c, owner)
        return change(value) if c is not None and self.name == name and is_known(value) else value

    return lambda patch: patch.setattr(Setting, "__get__", get)


def change_parameter(operation: type[Any], name: str, value: Any) -> Callable[[Patch], None]:
    """Every operation of a class computes with another value of one parameter."""
    original = operation.compute

    def compute(self: Any, *args: Any) -> Any:
        return original(operation(**{**{field: getattr(self, field) for field in self.fields}, name: value}), *args)

    return lambda patch: patch.setattr(operation, "compute", compute)


def swap_queries_and_keys(patch: Patch) -> None:
    original = Scores.compute

    def compute(self: Scores, run: Any, inputs: Any, *rest: Any) -> Any:
        q, k = inputs
        swapped = (k, q) if len(q) == len(k) else inputs  # with a cache there are more keys
        return original(self, run, swapped, *rest)

    patch.setattr(Scores, "compute", compute)


def take_the_residual_after_the_norm(patch: Patch) -> None:
    def layer(c: Any, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = h + attention(c, h, "self_attn.", bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        return x + gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)

    patch.setattr(Llama, "layer", layer)


def take_the_sigmoid_for_the_softmax(patch: Patch) -> None:
    patch.setattr(RowSoftmax, "compute", lambda self, *args: Activation("sigmoid").compute(*args))


MISTAKES: dict[str, tuple[dict[str, Any], Callable[[Patch], None]]] = {
    "activation": (LLAMA, change_setting("activation", lambda value: "gelu")),
    "norm epsilon": (LLAMA, change_setting("norm_eps", lambda value: 10 * value)),
    "rotary base": (LLAMA, change_setting("rope", lambda rope: rope._replace(base=10 * rope.base))),
    "rotary pairing": (LLAMA, change_parameter(Rotary, "pairing", "interleaved")),
    "attention scale": (LLAMA, change_parameter(Scores, "scale", 1.0)),
    "swapped queries and keys": (LLAMA, swap_queries_and_keys),
    "residual after the norm": (LLAMA, take_the_residual_after_the_norm),
    "router weights not normalised": (MOE, change_setting("norm_topk_prob", lambda value: False)),
    "router scores through a sigmoid": (MOE, take_the_sigmoid_for_the_softmax),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_shows_in_the_logits(name: str, monkeypatch: Patch) -> None:
    document, mistake = MISTAKES[name]
    cls_name = document["architectures"][0]
    assert max(logits.compare_logits(document, cls_name)) < logits.TOLERANCE
    mistake(monkeypatch)
    assert max(logits.compare_logits(document, cls_name)) > MISTAKE

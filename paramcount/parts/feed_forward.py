"""Feed-forward networks: plain, gated, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.flow import Data, Size, activate, elementwise, experts, fused, linear

GATED = ("gate_proj", "up_proj", "down_proj")


def plain_mlp(
    x: Data,
    names: tuple[str, str],
    component: str,
    d_ff: Size,
    *,
    activation: str = "gelu",
    bias: bool = False,
    transposed: bool = False,
) -> Data:
    """Up, activation, down. `names`: of the two matrices."""
    h = activate(linear(x, names[0], component + ".up", d_ff, bias=bias, transposed=transposed), activation)
    return linear(h, names[1], component + ".down", x.shape[-1], bias=bias, transposed=transposed)


def gpt_mlp(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: plain, biased, stored [in, out]."""
    return plain_mlp(x, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, bias=True, transposed=True)


def gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: Size,
    *,
    bias: bool = False,
    activation: str = "silu",
    names: tuple[str, str, str] = GATED,
) -> Data:
    """activation(gate) · up, then down: SwiGLU and its relatives. `names`: of gate, up and down.

    Source: Shazeer, arXiv:2002.05202.
    """
    gate, up, down = names
    gated = activate(linear(x, prefix + gate, component + ".gate", d_ff, bias=bias), activation)
    raised = linear(x, prefix + up, component + ".up", d_ff, bias=bias)
    return linear(gated * raised, prefix + down, component + ".down", x.shape[-1], bias=bias)


def fused_gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: Size,
    *,
    activation: str = "silu",
    bias: bool = False,
    names: tuple[str, str] = ("gate_up_proj", "down_proj"),
    up_first: bool = False,
) -> Data:
    """The same with gate and up out of one stored matrix. `up_first`: it holds them in the other order."""
    order = (component + ".up", component + ".gate") if up_first else (component + ".gate", component + ".up")
    halves = fused(x, prefix + names[0], dict.fromkeys(order, d_ff), bias=bias)
    gate, up = halves[::-1] if up_first else halves
    return linear(activate(gate, activation) * up, prefix + names[1], component + ".down", x.shape[-1], bias=bias)


def mixture(
    c: Any,
    x: Data,
    prefix: str,
    *,
    correct: Callable[[Data], Data] | None = None,
    names: tuple[str, str, str] = GATED,
    activation: str = "silu",
    bias: bool = False,
    router: str = "gate",
    router_bias: bool = False,
    n_active: Size | None = None,
) -> Data:
    """A router and its gated experts, stored one by one, with n_routed_experts, n_active_experts and d_expert of c.
    `correct`: what stands between the scores and the choice. `n_active`: of this layer, where layers differ in it."""
    scores = linear(x, prefix + router, "router", c.n_routed_experts, bias=router_bias)
    if correct:
        scores = correct(scores)
    return experts(
        x,
        scores,
        prefix + "experts.{expert}.",
        c.n_routed_experts,
        c.n_active_experts if n_active is None else n_active,
        lambda x: gated_mlp(x, "", "experts", c.d_expert, names=names, activation=activation, bias=bias),
    )


def shared_experts(c: Any, x: Data, prefix: str, *, bias: bool = False) -> Data:
    """The experts that every token visits, stored as one gated MLP as wide as all n_shared_experts of them."""
    return gated_mlp(x, prefix + "shared_experts.", "shared_experts", c.n_shared_experts * c.d_expert, bias=bias)


def shared_mixture(c: Any, x: Data, prefix: str, *, shared_bias: bool = False, **options: Any) -> Data:
    """A mixture of experts (`options` are its) beside shared ones.

    Source: arXiv:2401.06066, section 3.
    """
    return mixture(c, x, prefix, **options) + shared_experts(c, x, prefix, bias=shared_bias)


def correction(c: Any, name: str, *, role: str = "buffer") -> Callable[[Data], Data]:
    """`correct` of a mixture: the routing bias, one value per expert.

    It is learned outside the loss; it affects which experts are chosen but not their weights.

    Source: arXiv:2412.19437, section 2.1.2.
    """
    return lambda scores: elementwise(scores, "correct", name, "router", c.n_routed_experts, role=role)


def corrected_mixture(
    c: Any, x: Data, prefix: str, *, name: str = "gate.e_score_correction_bias", role: str = "buffer", **options: Any
) -> Data:
    """A mixture of experts beside shared ones with a correction of that name: DeepSeek-V3 and what followed it."""
    return shared_mixture(c, x, prefix, correct=correction(c, prefix + name, role=role), **options)

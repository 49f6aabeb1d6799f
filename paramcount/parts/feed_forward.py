"""Feed-forward networks: plain, gated, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.flow import Data, Size, act, experts, linear

GATED = ("gate_proj", "up_proj", "down_proj")


def plain_mlp(x: Data, names: tuple[str, str], component: str, d_ff: Size, *, activation: str = "gelu", bias: bool = False, transposed: bool = False) -> Data:
    """Up, activation, down. `names`: of the two matrices."""
    h = act(linear(x, names[0], component + ".up", d_ff, bias=bias, transposed=transposed), activation)
    return linear(h, names[1], component + ".down", x.shape[-1], bias=bias, transposed=transposed)


def gpt_mlp(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: plain, biased, stored [in, out]."""
    return plain_mlp(x, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, bias=True, transposed=True)


def gated_mlp(x: Data, prefix: str, component: str, d_ff: Size, *, bias: bool = False, activation: str = "silu", names: tuple[str, str, str] = GATED) -> Data:
    """activation(gate) · up, then down: SwiGLU and its relatives. `names`: of gate, up and down.

    Source: Shazeer, arXiv:2002.05202.
    """
    gate, up, down = names
    gated = act(linear(x, prefix + gate, component + ".gate", d_ff, bias=bias), activation)
    raised = linear(x, prefix + up, component + ".up", d_ff, bias=bias)
    return linear(gated * raised, prefix + down, component + ".down", x.shape[-1], bias=bias)


def mixture(
    c: Any,
    x: Data,
    prefix: str,
    *,
    correct: Callable[[Data], Data] | None = None,
    names: tuple[str, str, str] = GATED,
    bias: bool = False,
    router_bias: bool = False,
) -> Data:
    """A router and its gated experts, stored one by one, with n_routed_experts, n_active_experts and d_expert of c.
    `correct`: what stands between the scores and the choice."""
    scores = linear(x, prefix + "gate", "router", c.n_routed_experts, bias=router_bias)
    if correct:
        scores = correct(scores)
    return experts(
        x,
        scores,
        prefix + "experts.{expert}.",
        c.n_routed_experts,
        c.n_active_experts,
        lambda x: gated_mlp(x, "", "experts", c.d_expert, names=names, bias=bias),
    )


def shared_experts(c: Any, x: Data, prefix: str, *, bias: bool = False) -> Data:
    """The experts that every token visits, stored as one gated MLP as wide as all n_shared_experts of them."""
    return gated_mlp(x, prefix + "shared_experts.", "shared_experts", c.n_shared_experts * c.d_expert, bias=bias)


def shared_mixture(c: Any, x: Data, prefix: str, *, shared_bias: bool = False, **options: Any) -> Data:
    """A mixture of experts (`options` are its) beside shared ones.

    Source: arXiv:2401.06066, section 3.
    """
    return mixture(c, x, prefix, **options) + shared_experts(c, x, prefix, bias=shared_bias)

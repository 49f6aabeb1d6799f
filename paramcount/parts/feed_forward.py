"""Feed-forward networks: plain, gated, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from paramcount.flow import (
    Data,
    Size,
    Unknown,
    Weight,
    activate,
    add_routing_bias,
    clip,
    experts,
    fused,
    limit_to_groups,
    linear,
    normalise_weights,
    scale_by,
    top_k,
)
from paramcount.parts.settings import get_setting

ACTIVATION = Unknown("activation")
GATED = ("gate_proj", "up_proj", "down_proj")


def plain_mlp(
    x: Data,
    names: tuple[str, str],
    component: str,
    d_ff: Size,
    *,
    activation: str | Unknown = ACTIVATION,
    bias: bool = False,
    transposed: bool = False,
) -> Data:
    """Up, activation, down. `names`: of the two matrices."""
    h = activate(linear(x, names[0], component + ".up", d_ff, bias=bias, transposed=transposed), activation)
    return linear(h, names[1], component + ".down", x.shape[-1], bias=bias, transposed=transposed)


def gpt_mlp(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: plain, biased, stored [in, out]."""
    names, activation = ("mlp.c_fc", "mlp.c_proj"), get_setting(c, "activation")
    return plain_mlp(x, names, "mlp", c.d_ff, activation=activation, bias=True, transposed=True)


def gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: Size,
    *,
    bias: bool = False,
    activation: str | Unknown = ACTIVATION,
    names: tuple[str, str, str] = GATED,
    limit: float | Unknown | None = None,
) -> Data:
    """activation(gate) · up, then down: SwiGLU and its relatives. `names`: of gate, up and down. `limit`: the largest
    value of gate, and of up on either side.

    Source: Shazeer, arXiv:2002.05202.
    """
    gate, up, down = names
    gated = linear(x, prefix + gate, component + ".gate", d_ff, bias=bias)
    raised = linear(x, prefix + up, component + ".up", d_ff, bias=bias)
    if limit is not None:
        gated, raised = clip(gated, None, limit), clip(raised, -limit, limit)
    gated = activate(gated, activation)
    return linear(gated * raised, prefix + down, component + ".down", x.shape[-1], bias=bias)


def fused_gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: Size,
    *,
    activation: str | Unknown = ACTIVATION,
    bias: bool = False,
    names: tuple[str, str] = ("gate_up_proj", "down_proj"),
    up_first: bool = False,
) -> Data:
    """The same with gate and up out of one stored matrix. `up_first`: it holds them in the other order."""
    order = (component + ".up", component + ".gate") if up_first else (component + ".gate", component + ".up")
    halves = fused(x, prefix + names[0], dict.fromkeys(order, d_ff), bias=bias)
    gate, up = halves[::-1] if up_first else halves
    return linear(activate(gate, activation) * up, prefix + names[1], component + ".down", x.shape[-1], bias=bias)


Choose = Callable[[Data], Data]  # router logits [n, experts] to the weight of each expert, 0 if it is not chosen


def mixture(
    c: Any,
    x: Data,
    prefix: str,
    *,
    choose: Choose | None = None,
    names: tuple[str, str, str] = GATED,
    bias: bool = False,
    router: str = "gate",
    router_bias: bool = False,
) -> Data:
    """A router and its gated experts, stored one by one, with n_routed_experts, n_active_experts and d_expert of c.

    `choose`: the routing rule.
    """
    scores = linear(x, prefix + router, "router", c.n_routed_experts, bias=router_bias)  # [n, experts]
    activation = get_setting(c, "activation")
    return experts(
        x,
        choose(scores) if choose else scores,
        prefix + "experts.{expert}.",
        c.n_routed_experts,
        c.n_active_experts,
        lambda x: gated_mlp(x, "", "experts", c.d_expert, names=names, activation=activation, bias=bias),
    )


def shared_experts(c: Any, x: Data, prefix: str, *, bias: bool = False) -> Data:
    """The experts that every token uses, stored as one gated MLP that is n_shared_experts times as wide."""
    width, activation = c.n_shared_experts * c.d_expert, get_setting(c, "activation")
    return gated_mlp(x, prefix + "shared_experts.", "shared_experts", width, activation=activation, bias=bias)


def shared_mixture(
    c: Any,
    x: Data,
    prefix: str,
    *,
    choose: Choose | None = None,
    names: tuple[str, str, str] = GATED,
    router: str = "gate",
    shared_bias: bool = False,
) -> Data:
    """A mixture of experts plus shared experts. Source: arXiv:2401.06066, section 3."""
    routed = mixture(c, x, prefix, choose=choose, names=names, router=router)
    return routed + shared_experts(c, x, prefix, bias=shared_bias)


def routing_bias(c: Any, name: str, *, role: str = "buffer") -> Weight:
    """One value per expert, learned outside the loss: it affects which experts are chosen but not their weights.

    Source: arXiv:2412.19437, section 2.1.2.
    """
    return Weight(name, "router", (c.n_routed_experts,), role=role)


def choose_in_groups(
    c: Any,
    logits: Data,
    bias: Weight | None = None,
    *,
    scoring: str | Unknown = "sigmoid",
    by: Literal["max", "top 2"] = "top 2",
    excluded: float = float("-inf"),
    normalise: bool | Unknown | None = None,
) -> Data:
    """The weights of the experts that are chosen from the best groups, with n_active_experts and the settings n_groups,
    n_active_groups, norm_topk_prob (unless `normalise` is given) and routed_scale of c.

    Source: arXiv:2405.04434, section 2.2.2; with a routing bias arXiv:2412.19437, section 2.1.2.
    """
    scores = activate(logits, scoring)  # [n, experts]
    merit = limit_to_groups(add_routing_bias(scores, bias), c.n_groups, c.n_active_groups, by, excluded=excluded)
    weights = top_k(scores, c.n_active_experts, merit)  # [n, experts], 0 for those not chosen
    weights = normalise_weights(weights, c.norm_topk_prob if normalise is None else normalise, least_sum=1e-20)
    return scale_by(weights, c.routed_scale)
